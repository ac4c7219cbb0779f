// The stages in order: partition -> share -> loops -> fuse -> schedule. No other file calls them.
#pragma once
#include <optional>
#include <vector>

#include "compile/partition.hpp"

namespace tessera {

// Scalars among the leaves: operands of a plan that other graphs of the same form use too, or constants of a
// function's trace.
enum class Scalars { operands, constants };

// Graph -> Program through all passes; every stage is verified and, with TESSERA_DUMP, written to a file.
Program compile(const Graph&, const Layouts& layouts = {},
                const std::vector<std::optional<Sharding>>& root_layouts = {},
                Scalars scalars = Scalars::operands);

}  // namespace tessera
