// The rules by theme: each function adds those of its file to the table.
#pragma once
#include <string>
#include <string_view>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

void add_elementwise(Rules&);
void add_bits(Rules&);
void add_shapes(Rules&);
void add_products(Rules&);
void add_reductions(Rules&);
void add_windows(Rules&);
void add_sorts(Rules&);
void add_indexing(Rules&);
void add_scatter(Rules&);
void add_control(Rules&);
void add_matrices(Rules&);
void add_random(Rules&);
void add_layouts(Rules&);
void add_manual(Rules&);

// ": why" of an operation without a rule; "" if no reason is known.
std::string why_left_out(std::string_view name);

}  // namespace tessera::stablehlo
