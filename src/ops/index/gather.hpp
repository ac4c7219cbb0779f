// Gathers and scatters by index arrays: the dynamic part of x(i, j) and x.at(i, j).
#pragma once
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// The treatment of an index outside the dim, after negative ones were counted from the end. As in JAX, reads
// are clamped, writes dropped (a read with `drop` gives zero).
enum class OutOfRange { clamp, drop };

// k index arrays of one shape S address the k dims of x from `first`: the result has the dims of S instead.
// If an addressed dim is split, each rank contributes the elements that it holds.
Array gather(const Array& x, std::vector<Array> indices, int first, OutOfRange);

// x with x[.., indices, ..] op= updates, which have the shape of the gather's result. op: set add multiply
// min max.
Array scatter(const std::string& op, const Array& x, std::vector<Array> indices, const Array& updates,
              int first, OutOfRange);

// The transpose of gather: updates added into zeros of this shape.
Array scatter_add_zeros(const Shape& shape, std::vector<Array> indices, const Array& updates, int first,
                        OutOfRange);

}  // namespace tessera
