// Parsing of einsum expressions for operands of given shapes: text only.
#pragma once
#include <tessera/shape.hpp>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// Labels are letters; the dims of an ellipsis are numbered from the last dim.
using EinsumLabels = std::vector<int>;
inline constexpr int first_ellipsis_dim = 1000;

struct EinsumText {
  std::vector<EinsumLabels> terms;  // one label per dim of each operand
  EinsumLabels output;
  std::map<int, std::int64_t> sizes;  // extent of each label: 1 if all its dims have extent 1
};

// ArgumentError for an invalid expression, ShapeError for extents that differ.
EinsumText parse_einsum(const std::string& expression, std::span<const Shape> operands);

}  // namespace tessera
