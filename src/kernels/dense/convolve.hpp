// One rank's convolution: patches of the operand as the columns of a matrix, then matrix products.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::kernels {

// Along each spatial dim, output position p reads operand positions p * stride + k * dilation + first for k =
// 0 .. taps - 1; positions outside [0, in) read as zeros.
struct ConvolveDim {
  std::int64_t in, out, taps, stride, dilation, first;
};

// x (images, groups * channels, in...), weights (groups * features, channels, taps...), y (images, groups *
// features, out...).
struct ConvolveShape {
  Dtype dtype;
  std::int64_t images, groups, channels, features;
  std::vector<ConvolveDim> dims;
  bool is_ordered = false;  // the order of sums does not depend on blocks (gemm.hpp: ordered_product)
};

// y = the convolution (a correlation in signal-processing terms: taps are not reversed).
void convolve(const ConvolveShape&, const std::byte* x, const std::byte* weights, std::byte* y);
// weights = the sum over images and positions of y times the patch read there: the derivative of convolve by
// its weights.
void convolve_weights(const ConvolveShape&, const std::byte* x, const std::byte* y, std::byte* weights);

}  // namespace tessera::kernels
