// Discrete Fourier transforms of one rank's memory, by FFTW.
//
// forward: X[k] = sum_j x[j] exp(-2 pi i j k / n); backward: exp(+...), also without 1/n: callers scale.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera::kernels {

enum class FftKind { c2c, r2c, c2r };
enum class FftSign { forward, backward };

// How plans are chosen. Measured plans differ between processes, and so do their results in the last bit.
// Results that several ranks compute redundantly must be equal: `alike` plans from the shape alone, without
// FFTW's wisdom.
enum class FftPlanning { measured, alike };

// One loop of a transform: n points (or n transforms) and their strides, in elements of the array in
// question.
struct FftLoop {
  std::int64_t n = 1, in_stride = 1, out_stride = 1;
  friend bool operator==(const FftLoop&, const FftLoop&) = default;
};

// Dense row-major tiles. `dims` are transformed, in any order; for r2c and c2r the last entry is the halved
// dim, which has n real values on one side and n / 2 + 1 complex ones on the other. The result is multiplied
// by `scale`. `complex`: complex64 or complex128.
void fft_dense(Dtype complex, FftKind, FftSign, std::span<const int> dims, const Shape& in, const Shape& out,
               const void* src, void* dst, double scale, FftPlanning = FftPlanning::measured);

// A tile that need not be contiguous. Pieces that are read or written at a time fit into a cache; each
// element is read once, before it is written, so source and destination may be the same memory. Boxes count
// from the tile's corner; element (i...) of the box is at data[i . strides] (elements) on the transform's
// side. Several threads may call at the same time.
class FftTile {
 public:
  virtual ~FftTile() = default;
  virtual void read(const Index& box, std::byte* data, std::span<const std::int64_t> strides) const = 0;
  virtual void write(const Index& box, const std::byte* data,
                     std::span<const std::int64_t> strides) const = 0;
};
void fft_between(Dtype complex, FftKind, FftSign, std::span<const int> dims, const Shape& in,
                 const Shape& out, const FftTile& src, const FftTile& dst, double scale);

// Transforms `lines` contiguous lines of n points each, in place.
void fft_lines(Dtype complex, FftSign, std::int64_t lines, std::int64_t n, void* data,
               FftPlanning = FftPlanning::measured);

// Sets whether this process saves its measured plans for later runs (one process per job should).
// TESSERA_FFT_PLAN chooses how FFTW plans; auto estimates for a shape that is transformed once and measures
// for one that recurs.
void keep_fft_wisdom(bool);

}  // namespace tessera::kernels
