// Convolutions of long signals with many taps by Fourier transforms: n log2(n) steps instead of n times taps.
#pragma once
#include "kernels/dense/convolve.hpp"

namespace tessera::kernels {

// Whether the shape is one of single float32 signals for which transforms are quicker than sums.
bool goes_by_fourier(const ConvolveShape&);
// convolve() for such a shape, computed in float64. Elements that are too small beside the others to have
// float32's precision, and lines with infinities or NaN, are summed directly.
void convolve_fourier(const ConvolveShape&, const std::byte* x, const std::byte* weights, std::byte* y);

}  // namespace tessera::kernels
