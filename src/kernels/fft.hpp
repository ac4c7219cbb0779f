// Discrete Fourier transforms of one rank's memory, by FFTW. Plans are made once per shape, strides and alignment, and kept.
//
// forward: X[k] = sum_j x[j] exp(-2 pi i j k / n); backward has exp(+...) and no 1/n either: callers scale.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::kernels {

enum class FftKind { c2c, r2c, c2r };
enum class FftSign { forward, backward };

// One loop of a transform: n points (or n transforms), and how far apart they lie in elements of the array in question.
struct FftLoop {
  std::int64_t n = 1, in_stride = 1, out_stride = 1;
  friend bool operator==(const FftLoop&, const FftLoop&) = default;
};

// dst = transform of src along `points`, for every index of `batch`. r2c and c2r: the last of `points` is the halved one, n counts its
// real values; the halved side holds n / 2 + 1 of them. src is left as it is; src == dst is allowed for c2c with equal strides.
// `complex`: complex64 or complex128. c2r takes one dim of points only (fft_dense takes several).
void fft(Dtype complex, FftKind, FftSign, std::span<const FftLoop> points, std::span<const FftLoop> batch, const void* src, void* dst);

// Dense row-major tiles. `dims` are transformed, in any order; for r2c and c2r the last entry is the halved dim. The result is multiplied
// by `scale`.
void fft_dense(Dtype complex, FftKind, FftSign, std::span<const int> dims, const Shape& in, const Shape& out, const void* src, void* dst,
               double scale);

// Multiplies n elements, each of one or two reals of `complex`'s precision.
void scale_reals(Dtype complex, void* data, std::int64_t reals, double scale);

// TESSERA_FFT_PLAN says how plans are made. auto: estimated at a shape's first use, measured at its second. Whether this process keeps
// what was measured for later runs (one per job should).
void keep_fft_wisdom(bool);
struct FftPlanCounts {
  std::int64_t made = 0, measured = 0, reused = 0;
};
FftPlanCounts fft_plan_counts();

}  // namespace tessera::kernels
