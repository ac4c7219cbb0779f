// One index per element of a line: take_along_axis and its transpose.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// result[.., i, ..] = x[.., indices[.., i, ..], ..] along dim; indices out of range are clamped. The other
// dims must be equal.
Array gather_along(const Array& x, const Array& indices, int dim);
// result, with this extent along dim: result[.., indices[.., i, ..], ..] += updates[.., i, ..]
Array scatter_add_along(std::int64_t extent, const Array& indices, const Array& updates, int dim);

}  // namespace tessera
