// Convolutions by steps of 1 without a matrix of patches: in the padded operand, written as one line per
// channel, the elements that a tap reads for successive positions are a line, too.
//
//   padded rows    0 a b c 0 | 0 d e f 0      positions 0 1 2 . . 5 6 7 . .   (others: no output)
//   tap 2 of a row     b c 0   0 d e ...      position p reads p + 2
#pragma once
#include "kernels/dense/convolve.hpp"

namespace tessera::kernels {

// The functions for one instruction set, and their sizes: features per tile, lanes per vector; sums over
// channels and taps; sums over positions.
template <class T> struct TileFunctions {
  void (*sum)(const T* x, const std::int64_t* offsets, const T* weights, std::int64_t depth, T* out);
  void (*dot)(const T* const* y, const T* const* x, std::int64_t positions, T* sums);
  std::int64_t features, lanes;
};

// Whether the shape is of real floating-point numbers with steps of 1 and few positions in the padding.
bool goes_by_tiles(const ConvolveShape&);
// convolve() for such a shape: a tile of positions and features stays in registers for all channels and taps.
void convolve_tiles(const ConvolveShape&, const std::byte* x, const std::byte* weights, std::byte* y);
// inner: x is (channels, images, in...), y (features, images, out...), in one group.
enum class ImageOrder { outer, inner };
// convolve_weights() for such a shape. Returns false if a sum is not finite: positions in the padding add 0
// times an element, which changes sums only if that element is an infinity or NaN.
bool convolve_weights_tiles(const ConvolveShape&, const std::byte* x, const std::byte* y, std::byte* weights,
                            ImageOrder = ImageOrder::outer);

}  // namespace tessera::kernels
