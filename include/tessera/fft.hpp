// Fourier transforms of arrays, however they are split. Names, shapes, norms and results are
// numpy.fft's.
//
// float32 and complex64 give complex64, float64 and complex128 give complex128; integers and bool count as
// float32. Errors of the results grow like log n times the rounding unit. Axes that are not split cost no
// communication. A split axis trades places with another inside the mesh axes that split it: P('x', None,
// None) takes one exchange, P('x', 'y', None) two, and one more to come back. No operand is ever gathered; a
// rank holds at most a few blocks. One long line split over all ranks is transformed by them together (three
// exchanges; five when its length is a large prime).
//
// Errors: ArgumentError for an unknown norm or a length below 1, IndexError for an axis that is out of range
// or named twice, DtypeError for the real transforms of complex operands, ShardingError for a given sharding
// that does not fit.
#pragma once
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>

namespace tessera::fft {

// keep: the result is split like the operand. transposed: as the last stage leaves it, which saves the way
// back; its sharding() says how, and an inverse from there costs no more. given: FftOptions::given.
enum class OutSharding { keep, transposed, given };
inline constexpr OutSharding keep = OutSharding::keep, transposed = OutSharding::transposed,
                             given = OutSharding::given;

struct FftOptions {
  std::vector<int> axes = {};  // fft, ...: one, the last by default; fft2: two, the last two; fftn: several,
                               // all. The last one is the halved one of real transforms.
  std::string norm =
      "backward";  // who divides by n: backward (the inverse), ortho (both by its root), forward
  OutSharding out_sharding = OutSharding::keep;
  std::optional<Sharding> given = {};
  std::vector<std::int64_t> s =
      {};  // points transformed per axis, as many as there are axes; of irfft...: of the result
};

// n and s: points transformed; the operand is cut off or followed by zeros. irfft gives n real values, 2 (m
// - 1) of m by default.
Array fft(const Operand& x, FftOptions options = {});
Array fft(const Operand& x, std::int64_t n, FftOptions options = {});
Array ifft(const Operand& x, FftOptions options = {});
Array ifft(const Operand& x, std::int64_t n, FftOptions options = {});
Array rfft(const Operand& x, FftOptions options = {});
Array rfft(const Operand& x, std::int64_t n, FftOptions options = {});
Array irfft(const Operand& x, FftOptions options = {});
Array irfft(const Operand& x, std::int64_t n, FftOptions options = {});
Array hfft(const Operand& x, FftOptions options = {});
Array hfft(const Operand& x, std::int64_t n, FftOptions options = {});
Array ihfft(const Operand& x, FftOptions options = {});
Array ihfft(const Operand& x, std::int64_t n, FftOptions options = {});

// ---- several axes ----
Array fft2(const Operand& x, FftOptions options = {});
Array ifft2(const Operand& x, FftOptions options = {});
Array rfft2(const Operand& x, FftOptions options = {});
Array irfft2(const Operand& x, FftOptions options = {});
Array fftn(const Operand& x, FftOptions options = {});
Array ifftn(const Operand& x, FftOptions options = {});
Array rfftn(const Operand& x, FftOptions options = {});
Array irfftn(const Operand& x, FftOptions options = {});

// ---- frequencies ----
// Frequencies of the parts of fft and rfft of n samples that lie d apart: 0, 1/(nd), ... Uncommitted,
// float32 as everything created.
Array fftfreq(std::int64_t n, double d = 1.0, std::source_location where = std::source_location::current());
Array rfftfreq(std::int64_t n, double d = 1.0, std::source_location where = std::source_location::current());
Array fftfreq(std::int64_t n, double d, Dtype, std::source_location where = std::source_location::current());
Array rfftfreq(std::int64_t n, double d, Dtype, std::source_location where = std::source_location::current());
// Frequency 0 to the middle, and back.
Array fftshift(const Operand& x, Axes = {});
Array ifftshift(const Operand& x, Axes = {});

// sum_j a[j] b[k - j] over all dims, by transforms: extents n + m - 1 ("full"), n ("same", the middle) or |n
// - m| + 1 ("valid": one operand fits into the other). The smaller one lies like the other, or b like a.
Array convolve(const Operand& a, const Operand& b, const std::string& mode = "full");
// sum_j a[j + k] conj(b[j]): scipy.signal.correlate.
Array correlate(const Operand& a, const Operand& b, const std::string& mode = "full");

}  // namespace tessera::fft
