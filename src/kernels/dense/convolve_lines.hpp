// Convolutions with one feature per group (signals, filters, depthwise layers): too little arithmetic per
// element for a matrix of patches, which would be written and read once per tap.
#pragma once
#include "kernels/dense/convolve.hpp"

namespace tessera::kernels {

// Whether the shape has one feature, a real floating-point dtype and contiguous innermost positions.
bool goes_by_lines(const ConvolveShape&);
// convolve() for such a shape: each line of the result is a sum of shifted lines of the operand.
void convolve_lines(const ConvolveShape&, const std::byte* x, const std::byte* weights, std::byte* y);

}  // namespace tessera::kernels
