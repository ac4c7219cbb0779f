/// @file
/// Fourier transforms of arrays, however they are split. Names, shapes, norms and results are numpy.fft's.
///
/// **Dtypes.** float32 and complex64 give complex64, float64 and complex128 give complex128; integers, bool,
/// bfloat16 and float16 count as float32.
///
/// **Sharding.** The result is split like the operand, unless FftOptions::out_sharding says otherwise.
///
/// **Communication.** Not collective: every function here records. Axes that are not split cost no
/// communication. A split axis trades places with another inside the mesh axes that split it: P('x', None,
/// None) takes one exchange, P('x', 'y', None) two, and as many to come back. No operand is ever gathered;
/// a rank holds at most a few blocks. One long line split over all ranks is transformed by them together
/// (three exchanges; five when its length is a large prime). Uneven blocks and any length work.
///
/// **Numbers.** FFTW's: the relative error in the 2-norm grows like eps log n (Gentleman and Sande 1966);
/// the tests accept 1e-5 for float32 and 1e-12 for float64.
///
/// **Errors**, on every rank when recorded: ArgumentError for an unknown norm or a length below 1,
/// IndexError for an axis that is out of range or named twice, DtypeError for the real transforms of
/// complex operands, ShardingError for a given sharding that does not fit.
#pragma once
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>

namespace tessera::fft {

/// How a result lies.
enum class OutSharding {
  /// Like the operand.
  keep,
  /// As the last stage leaves it: saves the way back; an inverse from there costs no more.
  transposed,
  /// As FftOptions::given says.
  given
};
inline constexpr OutSharding keep = OutSharding::keep;              ///< short for OutSharding::keep
inline constexpr OutSharding transposed = OutSharding::transposed;  ///< short for OutSharding::transposed
inline constexpr OutSharding given = OutSharding::given;            ///< short for OutSharding::given

/// Options of all transforms.
struct FftOptions {
  /// The axes: of fft and its kin one, the last by default; of fft2 the last two; of fftn all. The last one
  /// named is the halved one of real transforms.
  std::vector<int> axes = {};
  /// Who divides by n: "backward" (the inverse), "ortho" (both by its root), "forward".
  std::string norm = "backward";
  OutSharding out_sharding = OutSharding::keep;  ///< how the result lies
  std::optional<Sharding> given = {};            ///< of OutSharding::given
  /// Points transformed per axis, as many as there are axes; of irfft and its kin: of the result.
  std::vector<std::int64_t> s = {};
};

/// @name Along one axis
/// @{

/// y[k] = sum_j x[j] exp(-2 pi i j k / n) along one axis. With n the operand is cut off or followed by
/// zeros to n points.
[[nodiscard]] Array fft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array fft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of fft.
[[nodiscard]] Array ifft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array ifft(const Operand& x, std::int64_t n, FftOptions options = {});
/// fft of real numbers: the first n / 2 + 1 parts; the others are their conjugates.
[[nodiscard]] Array rfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array rfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of rfft: n real numbers, 2 (m - 1) of m parts unless given.
[[nodiscard]] Array irfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array irfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// fft of a Hermitian signal of which the first half is given: n real numbers, 2 (m - 1) unless given.
[[nodiscard]] Array hfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array hfft(const Operand& x, std::int64_t n, FftOptions options = {});
/// The inverse of hfft.
[[nodiscard]] Array ihfft(const Operand& x, FftOptions options = {});
[[nodiscard]] Array ihfft(const Operand& x, std::int64_t n, FftOptions options = {});
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
  int axis = -1;                  ///< the one that is transformed
  std::string norm = "backward";  ///< "backward" (the inverse divides by 2 N), "ortho", "forward"
};

/// @name Cosine and sine transforms
/// scipy.fft's of real numbers, by complex FFTs of twice as many points, so a split axis is transposed inside
/// its mesh axis and nobody holds the whole. DtypeError for complex numbers, ArgumentError for another type
/// or norm, ShapeError for an axis without elements (dct of type 1: with fewer than two).
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

/// The frequencies of fft's parts for n samples that lie d apart: 0, 1 / (n d), ..., negative ones behind
/// the middle. Uncommitted, float32 unless given. ArgumentError for n below 1 or d = 0.
[[nodiscard]] Array fftfreq(std::int64_t n, double d = 1.0,
                            std::source_location where = std::source_location::current());
[[nodiscard]] Array fftfreq(std::int64_t n, double d, Dtype dtype,
                            std::source_location where = std::source_location::current());
/// The frequencies of rfft's n / 2 + 1 parts; otherwise as fftfreq.
[[nodiscard]] Array rfftfreq(std::int64_t n, double d = 1.0,
                             std::source_location where = std::source_location::current());
[[nodiscard]] Array rfftfreq(std::int64_t n, double d, Dtype dtype,
                             std::source_location where = std::source_location::current());
/// Frequency 0 to the middle of the axes, or of all. Only what changes owner travels.
[[nodiscard]] Array fftshift(const Operand& x, Axes axes = {});
/// The inverse of fftshift.
[[nodiscard]] Array ifftshift(const Operand& x, Axes axes = {});
/// @}

/// @name Convolution
/// By transforms, so its error is relative to the largest element. The smaller operand is placed like the
/// other, or b like a. ArgumentError for another mode, ShapeError for operands of different ndim, without
/// elements, or in mode "valid" where neither fits into the other.
/// @{

/// sum_j a[j] b[k - j] over all dims (scipy.signal.fftconvolve): extents n + m - 1 ("full"), n ("same", the
/// middle) or |n - m| + 1 ("valid").
[[nodiscard]] Array convolve(const Operand& a, const Operand& b, const std::string& mode = "full");
/// sum_j a[j + k] conj(b[j]) (scipy.signal.correlate).
[[nodiscard]] Array correlate(const Operand& a, const Operand& b, const std::string& mode = "full");
/// @}

}  // namespace tessera::fft
