// The parts of indexing that reading and writing share.
#pragma once
#include "ops/index/parse.hpp"
#include "ops/index/remap_op.hpp"

namespace tessera {

// x[start::step] reshaped to p.shape.
Array static_slice(const Array& x, const ParsedIndex&);
// take whose indices out of range are clamped, also those that are known.
Array take_clamped(const Operand& x, const Operand& indices, int axis);
// The permutation that brings the addressed dims side by side to position p.arrays_at.
std::vector<int> arrays_in_place(const ParsedIndex&);

}  // namespace tessera
