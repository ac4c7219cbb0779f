// The named transforms: check axes, lengths and norms, and record one op.
#include <tessera/fft.hpp>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "ops/fourier/fft_op.hpp"
#include "types/promotion.hpp"

namespace tessera::fft {
namespace {

using kernels::FftKind;
using kernels::FftSign;

struct Transform {
  FftKind kind;
  FftSign sign;
  std::size_t axes = 0;  // number of axes by default, counted from the last; 0: all
};

std::vector<int> dims_of(const Transform& how, const Operand& x, const FftOptions& options,
                         std::size_t lengths) {
  const int ndim = x.array.ndim();
  auto axes = options.axes;
  if (axes.empty()) {
    const auto count = how.axes != 0 ? how.axes : lengths != 0 ? lengths : static_cast<std::size_t>(ndim);
    for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<int>(i) - static_cast<int>(count));
    if (count > static_cast<std::size_t>(ndim) && ndim > 0)
      throw ArgumentError(call_text() + ": it transforms " + format_count(count, "axis") +
                          " of an array of " + format_count(ndim, "dimension") + ", " + describe(x.array));
    if (axes.empty())
      throw ArgumentError(call_text() + ": an array without dimensions has no axis to transform");
  }
  if (how.axes != 0 && axes.size() != how.axes)
    throw ArgumentError(call_text() + ": it transforms " + format_count(how.axes, "axis") +
                        ", but options.axes names " + std::to_string(axes.size()) + ". Use the n-d form, " +
                        (how.kind == FftKind::c2c ? "fftn or ifftn" : "rfftn or irfftn"));
  checked_dims(axes, ndim, false);
  std::vector<int> dims;
  for (const int axis : axes) dims.push_back(checked_dim(axis, ndim));
  return dims;
}

// The scale factor of the result, for `points` points in total.
double scale_of(const Transform& how, const std::string& norm, double points) {
  const bool forward = how.sign == FftSign::forward;
  if (norm == "backward") return forward ? 1 : 1 / points;
  if (norm == "ortho") return 1 / std::sqrt(points);
  if (norm == "forward") return forward ? 1 / points : 1;
  throw ArgumentError(call_text() + ": there is no norm \"" + norm + "\"; it is backward, ortho or forward");
}

Array as_operand_of(const Transform& how, const Array& x) {
  const Dtype inexact = to_inexact(x.dtype());
  if (how.kind == FftKind::r2c) {
    if (is_complex(inexact))
      throw DtypeError(call_text() + ": it transforms real numbers, the operand is " + describe(x) +
                       ". Use " +
                       (how.axes == 1   ? "fft"
                        : how.axes == 2 ? "fft2"
                                        : "fftn") +
                       ", or take real(x)");
    return cast_to(x, inexact);
  }
  return cast_to(x, complex_dtype(inexact));
}

Array transform(const Transform& how, const Operand& x, std::optional<std::int64_t> n_given,
                const FftOptions& options) {
  check_usable(x.array);
  const std::vector<std::int64_t> lengths = n_given ? std::vector<std::int64_t>{*n_given} : options.s;
  FftParams p{how.kind,    how.sign, dims_of(how, x, options, lengths.size()), 0, 1, options.out_sharding,
              std::nullopt};
  if (!lengths.empty() && lengths.size() != p.dims.size())
    throw ArgumentError(call_text() + ": " + std::to_string(lengths.size()) + " lengths for " +
                        format_count(p.dims.size(), "axis"));
  Shape extents = x.array.shape();
  double points = 1;
  for (std::size_t i = 0; i < p.dims.size(); ++i) {
    auto& extent = extents[p.dims[i]];
    const bool is_halved = how.kind == FftKind::c2r && i + 1 == p.dims.size();
    const auto n = !lengths.empty() ? lengths[i] : is_halved ? 2 * (extent - 1) : extent;
    if (n < 1)
      throw ArgumentError(call_text() + ": " + std::to_string(n) + " points along axis " +
                          std::to_string(p.dims[i]) + " of shape " + to_string(x.array.shape()) +
                          "; a transform needs at least 1" +
                          (is_halved && lengths.empty() ? " (2 (m - 1) of m by default: pass n)" : ""));
    points *= static_cast<double>(n);
    if (is_halved) p.length = n;
    extent = is_halved ? n / 2 + 1 : n;
  }
  p.scale = scale_of(how, options.norm, points);
  // Numbers of a smaller dtype are moved, and a file is read so before it is converted.
  const Array operand = as_operand_of(how, record_fft_resize(x.array, extents));
  if (p.out_sharding == OutSharding::given && !options.given)
    throw ArgumentError(call_text() + ": out_sharding is given, but options.given holds no sharding");
  if (options.given) {
    p.out_sharding = OutSharding::given;
    p.given = options.given;
    Shape result = extents;
    const auto halved = static_cast<std::size_t>(p.dims.back());
    if (how.kind == FftKind::r2c) result[halved] = result[halved] / 2 + 1;
    if (how.kind == FftKind::c2r) result[halved] = p.length;
    p.given->check_fits(result, call_text().c_str());
  }
  return record_fft(operand, std::move(p));
}

constexpr FftKind c2c = FftKind::c2c, r2c = FftKind::r2c, c2r = FftKind::c2r;
constexpr FftSign forward = FftSign::forward, backward = FftSign::backward;

// A Hermitian signal swaps the roles of forward and inverse, and so those of the norms.
FftOptions with_swapped_norm(FftOptions options) {
  if (options.norm == "backward")
    options.norm = "forward";
  else if (options.norm == "forward")
    options.norm = "backward";
  return options;
}
Array hermitian(const char* name, const Operand& x, std::optional<std::int64_t> n,
                const FftOptions& options) {
  const Call call(name, x.where);
  check_usable(x.array);
  const Array flipped = is_complex(x.array.dtype()) ? conj(x) : x.array;
  return transform({c2r, backward, 1}, flipped, n, with_swapped_norm(options));
}
Array inverse_hermitian(const char* name, const Operand& x, std::optional<std::int64_t> n,
                        const FftOptions& options) {
  const Call call(name, x.where);
  return conj(transform({r2c, forward, 1}, x, n, with_swapped_norm(options)));
}
Array named(const char* name, const Transform& how, const Operand& x, std::optional<std::int64_t> n,
            const FftOptions& options) {
  const Call call(name, x.where);
  return transform(how, x, n, options);
}

}  // namespace

Array fft(const Operand& x, FftOptions o) { return named("fft", {c2c, forward, 1}, x, {}, o); }
Array ifft(const Operand& x, FftOptions o) { return named("ifft", {c2c, backward, 1}, x, {}, o); }
Array rfft(const Operand& x, FftOptions o) { return named("rfft", {r2c, forward, 1}, x, {}, o); }
Array irfft(const Operand& x, FftOptions o) { return named("irfft", {c2r, backward, 1}, x, {}, o); }
Array fft2(const Operand& x, FftOptions o) { return named("fft2", {c2c, forward, 2}, x, {}, o); }
Array ifft2(const Operand& x, FftOptions o) { return named("ifft2", {c2c, backward, 2}, x, {}, o); }
Array rfft2(const Operand& x, FftOptions o) { return named("rfft2", {r2c, forward, 2}, x, {}, o); }
Array irfft2(const Operand& x, FftOptions o) { return named("irfft2", {c2r, backward, 2}, x, {}, o); }
Array fftn(const Operand& x, FftOptions o) { return named("fftn", {c2c, forward, 0}, x, {}, o); }
Array ifftn(const Operand& x, FftOptions o) { return named("ifftn", {c2c, backward, 0}, x, {}, o); }
Array rfftn(const Operand& x, FftOptions o) { return named("rfftn", {r2c, forward, 0}, x, {}, o); }
Array irfftn(const Operand& x, FftOptions o) { return named("irfftn", {c2r, backward, 0}, x, {}, o); }
Array hfft(const Operand& x, FftOptions o) { return hermitian("hfft", x, {}, o); }
Array ihfft(const Operand& x, FftOptions o) { return inverse_hermitian("ihfft", x, {}, o); }

// With n points: cropped or padded to them.
Array fft(const Operand& x, std::int64_t n, FftOptions o) { return named("fft", {c2c, forward, 1}, x, n, o); }
Array ifft(const Operand& x, std::int64_t n, FftOptions o) {
  return named("ifft", {c2c, backward, 1}, x, n, o);
}
Array rfft(const Operand& x, std::int64_t n, FftOptions o) {
  return named("rfft", {r2c, forward, 1}, x, n, o);
}
Array irfft(const Operand& x, std::int64_t n, FftOptions o) {
  return named("irfft", {c2r, backward, 1}, x, n, o);
}
Array hfft(const Operand& x, std::int64_t n, FftOptions o) { return hermitian("hfft", x, n, o); }
Array ihfft(const Operand& x, std::int64_t n, FftOptions o) { return inverse_hermitian("ihfft", x, n, o); }

}  // namespace tessera::fft
