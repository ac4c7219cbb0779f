// One index per element of a line: take_along_axis and its transpose.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// result[.., i, ..] = x[.., indices[.., i, ..], ..] along dim; out of range indices are clamped. Other dims
// are equal.
Array gather_along(const Array& x, const Array& indices, int dim);
// result of this extent along dim: result[.., indices[.., i, ..], ..] += updates[.., i, ..]
Array scatter_add_along(std::int64_t extent, const Array& indices, const Array& updates, int dim);

}  // namespace tessera
