/// @file
/// Fourier transforms of arrays with any split. Names, shapes, norms and results are numpy.fft's.
///
/// **Dtypes.** float32 and complex64 give complex64, float64 and complex128 give complex128; integers, bool,
/// bfloat16 and float16 count as float32.
///
/// **Sharding.** The result is split like the operand, unless FftOptions::out_sharding says otherwise.
///
/// **Communication.** Not collective: every function here records. Unsplit axes cost no communication. A
/// split axis is exchanged with an unsplit one, inside the mesh axes that split it: P('x', None, None) takes
/// one exchange, P('x', 'y', None) two, and as many for the way back. No operand is ever gathered; a rank
/// holds at most a few blocks. A single long line split over all ranks is transformed by all of them together
/// (three exchanges; five if its length is a large prime). Uneven blocks and any length work.
///
/// **Numbers.** FFTW's: the relative error in the 2-norm grows like eps log n (Gentleman and Sande 1966);
/// the tests accept 1e-5 for float32 and 1e-12 for float64.
///
/// **Errors**, on every rank when recorded: ArgumentError for an unknown norm or a length below 1, IndexError
/// for an axis that is out of range or named twice, DtypeError for the real transforms of complex operands,
/// ShardingError for a given sharding that does not fit.
#pragma once
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/choices.hpp>

namespace tessera::fft {

inline constexpr OutSharding keep = OutSharding::keep;              ///< short for OutSharding::keep
inline constexpr OutSharding transposed = OutSharding::transposed;  ///< short for OutSharding::transposed
inline constexpr OutSharding given = OutSharding::given;            ///< short for OutSharding::given

/// Options of all transforms.
struct FftOptions {
  /// The axes: one for fft and its relatives, by default the last; the last two for fft2; all for fftn. Real
  /// transforms halve the last axis named.
  std::vector<int> axes = {};
  /// The direction that divides by n: "backward" (the inverse), "ortho" (both, by the square root),
  /// "forward".
  std::string norm = "backward";
  OutSharding out_sharding = OutSharding::keep;  ///< the layout of the result
  std::optional<Sharding> given = {};            ///< for OutSharding::given
  /// Number of points transformed per axis; for irfft and its relatives: of the result.
  std::vector<std::int64_t> s = {};
};

/// @name Along one axis
/// @{

/// y[k] = sum_j x[j] exp(-2 pi i j k / n) along one axis. With n the operand is truncated or zero-padded to n
/// points.
[[nodiscard]] Array fft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array fft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of fft.
[[nodiscard]] Array ifft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array ifft(const Operand& x, std::int64_t n, FftOptions options = {});
/// fft of real numbers: the first n / 2 + 1 coefficients; the others are their conjugates.
[[nodiscard]] Array rfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array rfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of rfft: n real numbers, by default 2 (m - 1) from m coefficients.
[[nodiscard]] Array irfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array irfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// fft of a Hermitian signal given by its first half: n real numbers, 2 (m - 1) unless given.
[[nodiscard]] Array hfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array hfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of hfft.
[[nodiscard]] Array ihfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array ihfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// @}

/// @name Along one axis, by position
/// Templates, so that fft(x, n, {}) still means options.
/// @{

/// fft(x, n, {.axes = {axis}}), as numpy.fft.fft.
template <std::same_as<int> I> [[nodiscard]] Array fft(const Operand& x, std::int64_t n, I axis) {
  return fft(x, n, {.axes = {axis}});
}
/// ifft(x, n, {.axes = {axis}}).
template <std::same_as<int> I> [[nodiscard]] Array ifft(const Operand& x, std::int64_t n, I axis) {
  return ifft(x, n, {.axes = {axis}});
}
/// rfft(x, n, {.axes = {axis}}).
template <std::same_as<int> I> [[nodiscard]] Array rfft(const Operand& x, std::int64_t n, I axis) {
  return rfft(x, n, {.axes = {axis}});
}
/// irfft(x, n, {.axes = {axis}}).
template <std::same_as<int> I> [[nodiscard]] Array irfft(const Operand& x, std::int64_t n, I axis) {
  return irfft(x, n, {.axes = {axis}});
}
/// @}

/// @name Along several axes
/// @{

/// fft along two axes, the last two unless named.
[[nodiscard]] Array fft2(const Operand& x, FftOptions options = {});
/// The inverse of fft2.
[[nodiscard]] Array ifft2(const Operand& x, FftOptions options = {});
/// rfft along the last of two axes, fft along the other.
[[nodiscard]] Array rfft2(const Operand& x, FftOptions options = {});
/// The inverse of rfft2.
[[nodiscard]] Array irfft2(const Operand& x, FftOptions options = {});
/// fft along several axes, all unless named.
[[nodiscard]] Array fftn(const Operand& x, FftOptions options = {});
/// The inverse of fftn.
[[nodiscard]] Array ifftn(const Operand& x, FftOptions options = {});
/// rfft along the last of the axes, fft along the others.
[[nodiscard]] Array rfftn(const Operand& x, FftOptions options = {});
/// The inverse of rfftn.
[[nodiscard]] Array irfftn(const Operand& x, FftOptions options = {});
/// @}

/// Options of the cosine and sine transforms.
struct CosineOptions {
  int type = 2;                   ///< 1 to 4
  int axis = -1;                  ///< the transformed axis
  std::string norm = "backward";  ///< "backward" (the inverse divides by 2 N), "ortho", "forward"
};

/// @name Cosine and sine transforms
/// scipy.fft's transforms of real numbers, by complex FFTs of twice as many points. A split axis is
/// transposed inside its mesh axis, and never gathered. DtypeError for complex numbers, ArgumentError for
/// another type or norm, ShapeError for an axis without elements (dct of type 1: with fewer than two).
/// @{

/// 2 sum_j x[j] cos(pi (2 j + 1) k / (2 n)) for type 2.
[[nodiscard]] Array dct(const Operand& x, CosineOptions options = {});
/// The inverse of dct of the same type and norm.
[[nodiscard]] Array idct(const Operand& x, CosineOptions options = {});
/// 2 sum_j x[j] sin(pi (2 j + 1) (k + 1) / (2 n)) for type 2.
[[nodiscard]] Array dst(const Operand& x, CosineOptions options = {});
/// The inverse of dst of the same type and norm.
[[nodiscard]] Array idst(const Operand& x, CosineOptions options = {});
/// dct along all axes, or those named.
[[nodiscard]] Array dctn(const Operand& x, Axes axes = {}, int type = 2,
                         const std::string& norm = "backward");
/// The inverse of dctn.
[[nodiscard]] Array idctn(const Operand& x, Axes axes = {}, int type = 2,
                          const std::string& norm = "backward");
/// @}

/// @name Frequencies
/// @{

/// The frequencies of fft's coefficients for n samples at distance d: 0, 1 / (n d), ..., with negative ones
/// in the second half. Uncommitted, float32 unless given. ArgumentError for n below 1 or d = 0.
[[nodiscard]] Array fftfreq(std::int64_t n, double d = 1.0,
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array fftfreq(std::int64_t n, double d, Dtype dtype,
                            std::source_location where = std::source_location::current());
/// The frequencies of rfft's n / 2 + 1 coefficients; otherwise as fftfreq.
[[nodiscard]] Array rfftfreq(std::int64_t n, double d = 1.0,
                             std::source_location where = std::source_location::current());
[[nodiscard]] Array rfftfreq(std::int64_t n, double d, Dtype dtype,
                             std::source_location where = std::source_location::current());
/// Moves frequency 0 to the middle of the axes, or of all. Only elements that change owner are sent.
[[nodiscard]] Array fftshift(const Operand& x, Axes axes = {});
/// The inverse of fftshift.
[[nodiscard]] Array ifftshift(const Operand& x, Axes axes = {});
/// @}

/// @name Convolution
/// Computed by transforms, so the error is relative to the largest element. The smaller operand is moved to
/// the other's layout, or b to a's. ArgumentError for another mode, ShapeError for operands of different
/// ndim, without elements, or in mode "valid" if neither fits into the other.
/// @{

/// sum_j a[j] b[k - j] over all dims (scipy.signal.fftconvolve): extents n + m - 1 ("full"), n ("same", the
/// middle) or |n - m| + 1 ("valid").
[[nodiscard]] Array convolve(const Operand& a, const Operand& b, const std::string& mode = "full");
/// sum_j a[j + k] conj(b[j]) (scipy.signal.correlate).
[[nodiscard]] Array correlate(const Operand& a, const Operand& b, const std::string& mode = "full");
/// @}

}  // namespace tessera::fft
