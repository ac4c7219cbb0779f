// Piecewise linear functions through points.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <optional>

namespace tessera::kernels {

// n >= 1 points of one dtype, float32 or float64; xp ascends. Beyond the ends: left and right, or fp's
// first and last value.
struct Points {
  const void *xp, *fp;
  std::int64_t n;
  std::optional<double> left, right;
};

// out[i]: the function at x[i], NaN at NaN.
void interpolate(Dtype, const void* x, std::int64_t count, const Points&, void* out);

}  // namespace tessera::kernels
