// The meaning of an einsum expression for operands of given shapes: pure text.
#pragma once
#include <tessera/shape.hpp>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// Letters; what an ellipsis stands for is numbered from the last dim.
using EinsumLabels = std::vector<int>;
inline constexpr int first_ellipsis_dim = 1000;

struct EinsumText {
  std::vector<EinsumLabels> terms;  // a label for each dim of each operand
  EinsumLabels output;
  std::map<int, std::int64_t> sizes;  // of each label: 1 where all its dims are
};

// ArgumentError for an expression that means nothing, ShapeError for extents that differ.
EinsumText parse_einsum(const std::string& expression, std::span<const Shape> operands);

}  // namespace tessera
