// Functions around transforms: frequencies, shifts, convolutions.
#include <tessera/fft.hpp>

#include <algorithm>
#include <functional>

#include "ops/build.hpp"
#include "ops/fourier/fft_op.hpp"
#include "types/promotion.hpp"

namespace tessera::fft {
namespace {

void check_samples(std::int64_t n, double d) {
  if (n < 1 || d == 0)
    throw ArgumentError(call_text() + ": n = " + std::to_string(n) + ", d = " + std::to_string(d) +
                        "; n must be at least 1 and d other than 0");
}

Array shift(const Operand& x, const Axes& axes, bool back) {
  check_usable(x.array);
  Array result = x.array;
  for (const int d : checked_dims(axes.values, x.array.ndim(), true)) {
    const auto half = static_cast<int>(x.array.shape()[d] / 2);
    if (half != 0 || back) result = roll(result, back ? -half : half, d);
  }
  return result;
}

// The range of the full result that `mode` selects.
Range window_of(const std::string& mode, std::int64_t n, std::int64_t m) {
  if (mode == "full") return {0, n + m - 1};
  if (mode == "same") return {(m - 1) / 2, (m - 1) / 2 + n};
  if (mode != "valid")
    throw ArgumentError(call_text() + ": there is no mode \"" + mode + "\"; it is full, same or valid");
  if (m > n)
    throw ShapeError(call_text() +
                     ": valid needs one operand that fits into the other in every dimension, but " +
                     std::to_string(m) + " > " + std::to_string(n));
  return {m - 1, n};
}

Array convolve_as(const Operand& a, const Operand& b, const std::string& mode) {
  check_usable(a.array);
  check_usable(b.array);
  const Shape &n = a.array.shape(), &m = b.array.shape();
  if (n.size() != m.size() || n.empty() || n.elements() == 0 || m.elements() == 0)
    throw ShapeError(call_text() + ": the operands have shapes " + to_string(n) + " and " + to_string(m) +
                     "; both need elements and as many dimensions");
  Shape padded = n;
  std::vector<IndexPart> window;
  for (std::size_t d = 0; d < n.size(); ++d) {
    padded[d] = fast_length(n[d] + m[d] - 1);
    const auto range = window_of(mode, n[d], m[d]);
    window.emplace_back(slice(range.start, range.stop));
  }
  const bool is_real = !is_complex(a.array.dtype()) && !is_complex(b.array.dtype());
  // The product is computed in the layout in which the last stage leaves the spectra. b is moved to a's
  // layout if needed.
  FftOptions forth, back;
  forth.out_sharding = transposed;
  forth.s = back.s = padded.vector();
  Array second = b.array;
  if (a.array.is_committed() && !(second.is_committed() && second.sharding() == a.array.sharding()))
    second = device_put(second, a.array.sharding());
  if (a.array.is_committed()) back.out_sharding = given, back.given = a.array.sharding();
  const Operand left(a.array), right(second);
  const Array product =
      is_real ? rfftn(left, forth) * rfftn(right, forth) : fftn(left, forth) * fftn(right, forth);
  const Array full = is_real ? irfftn(product, back) : ifftn(product, back);
  return index(full, window);
}

}  // namespace

Array fftfreq(std::int64_t n, double d, Dtype dtype, std::source_location where) {
  const Call call("fftfreq", where);
  check_samples(n, d);
  const Array k = arange_of(std::int64_t{0}, n, std::int64_t{1}, int64);
  return astype(tessera::where(k < Array((n + 1) / 2), k, k - Array(n)), dtype) *
         Array(1 / (static_cast<double>(n) * d));
}
Array rfftfreq(std::int64_t n, double d, Dtype dtype, std::source_location where) {
  const Call call("rfftfreq", where);
  check_samples(n, d);
  return astype(arange_of(std::int64_t{0}, n / 2 + 1, std::int64_t{1}, int64), dtype) *
         Array(1 / (static_cast<double>(n) * d));
}
Array fftfreq(std::int64_t n, double d, std::source_location where) { return fftfreq(n, d, float32, where); }
Array rfftfreq(std::int64_t n, double d, std::source_location where) {
  return rfftfreq(n, d, float32, where);
}

Array fftshift(const Operand& x, Axes axes) {
  const Call call("fftshift", x.where);
  return shift(x, axes, false);
}
Array ifftshift(const Operand& x, Axes axes) {
  const Call call("ifftshift", x.where);
  return shift(x, axes, true);
}

namespace {

// Whether mode "valid" slides a over b: a fits into b in every dim, and b does not fit into a.
bool slides_first(const Operand& a, const Operand& b, const std::string& mode) {
  const Shape &n = a.array.shape(), &m = b.array.shape();
  return mode == "valid" && n.size() == m.size() && n != m &&
         std::equal(n.begin(), n.end(), m.begin(), std::less_equal<>());
}

// x reversed in all dims, and conjugated.
Operand turned(const Operand& x) {
  const Array flipped = flip(x);
  return is_complex(flipped.dtype()) ? conj(flipped) : flipped;
}

}  // namespace

Array convolve(const Operand& a, const Operand& b, const std::string& mode) {
  const Call call("convolve", a.where);
  check_usable(a.array);
  check_usable(b.array);
  return slides_first(a, b, mode) ? convolve_as(b, a, mode) : convolve_as(a, b, mode);
}
Array correlate(const Operand& a, const Operand& b, const std::string& mode) {
  const Call call("correlate", a.where);
  check_usable(a.array);
  check_usable(b.array);
  // Swapped operands give the reversed correlation.
  if (slides_first(a, b, mode)) return turned(convolve_as(b, turned(a), mode)).array;
  return convolve_as(a, turned(b), mode);
}

}  // namespace tessera::fft
