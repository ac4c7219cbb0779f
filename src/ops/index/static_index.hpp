// The steps of indexing that reads and updates share.
#pragma once
#include "ops/index/parse.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {

// x[start::step] reshaped to p.shape.
Array static_slice(const Array& x, const ParsedIndex&);
// take that clamps indices out of range, also those that are known.
Array take_clamped(const Operand& x, const Operand& indices, int axis);
// The permutation that moves the addressed dims to consecutive positions from p.arrays_at.
std::vector<int> arrays_in_place(const ParsedIndex&);
// The mask with the extents of the dims of x from `first` on. One without elements, which may have 0 in place
// of an extent, chooses nothing, as in NumPy and the array API standard. IndexError for other shapes.
Array fitted_mask(const Array& x, const Array& mask, int first);

}  // namespace tessera
