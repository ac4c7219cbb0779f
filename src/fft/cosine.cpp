// Cosine and sine transforms by FFTs: the FFT of a real line, padded with zeros to twice its length, contains
// them in its real and imaginary parts, up to a phase factor.
//
//   (2 j + 1) k / 2n  = 2 j k / 2n + k / 2n                    types 2: phase after the FFT
//   j (2 k + 1) / 2n  = 2 j k / 2n + j / 2n                    types 3: phase before it
//   (2 j + 1) (2 k + 1) / 4n = 2 j k / 2n + j / 2n + (2 k + 1) / 4n    types 4: both
#include <tessera/fft.hpp>

#include <cmath>
#include <numbers>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera::fft {
namespace {

enum class Wave { cosine, sine };

// One transform: preparation of the operand, length of the FFT, and extraction of the result.
class Line {
 public:
  Line(const Array& x, Wave wave, int type, int axis, bool orthonormal)
      : x_(x),
        wave_(wave),
        type_(type),
        dim_(checked_dim(axis, x.ndim())),
        n_(x.shape()[dim_]),
        orthonormal_(orthonormal) {
    if (n_ < (wave_ == Wave::cosine && type_ == 1 ? 2 : 1))
      throw ShapeError(call_text() + ": axis " + std::to_string(dim_) + " of shape " + to_string(x.shape()) +
                       " has " + std::to_string(n_) + " elements; it must have " +
                       (wave_ == Wave::cosine && type_ == 1 ? "two or more" : "one or more"));
  }
  // Half the factor by which a transform followed by its inverse multiplies.
  std::int64_t half() const { return type_ != 1 ? n_ : wave_ == Wave::cosine ? n_ - 1 : n_ + 1; }

  Array run() const {
    const Array given = orthonormal_ ? x_ * ends_before() : x_;
    Array result = wave_ == Wave::cosine ? cosines(given) : sines(given);
    if (orthonormal_) result = result * ends_behind() * std::sqrt(0.5 / static_cast<double>(half()));
    return result;
  }

 private:
  Array along(const Array& vector) const {
    std::vector<std::int64_t> extents(x_.shape().size(), 1);
    extents[dim_] = vector.shape()[0];
    return reshape(vector, Shape(std::move(extents)));
  }
  // A vector of ones with `factor` at the given indices.
  Array only_at(std::vector<std::int64_t> places, double factor) const {
    const Array numbers = arange(n_);
    Array result = ones({n_}, x_.dtype());
    for (const auto place : places) result = where(numbers == place, factor * ones_like(result), result);
    return along(result);
  }
  Array ends_before() const {
    const double root = std::numbers::sqrt2;
    if (type_ == 1 && wave_ == Wave::cosine) return only_at({0, n_ - 1}, root);
    if (type_ == 3) return only_at({wave_ == Wave::cosine ? 0 : n_ - 1}, root);
    return only_at({}, 1);
  }
  Array ends_behind() const {
    const double root = std::numbers::sqrt2 / 2;
    if (type_ == 1 && wave_ == Wave::cosine) return only_at({0, n_ - 1}, root);
    if (type_ == 2) return only_at({wave_ == Wave::cosine ? 0 : n_ - 1}, root);
    return only_at({}, 1);
  }
  // Phase factors exp(-i pi (first + k) / period) for k in [0, count).
  Array turned(std::int64_t count, double first, double period) const {
    const Array angle = (astype(arange(count), float64) + first) * (-std::numbers::pi / period);
    const Array phase = cos(angle) + std::complex<double>(0, 1) * sin(angle);
    return along(astype(phase, x_.dtype() == float32 ? complex64 : complex128));
  }
  Array transformed(const Array& x, std::int64_t points) const {
    FftOptions options;
    options.axes = {dim_};
    options.s = {points};
    return is_complex(x.dtype()) ? fft(x, options) : rfft(x, options);
  }
  Array part(const Array& x, std::int64_t start) const {
    std::vector<IndexPart> parts(static_cast<std::size_t>(dim_), IndexPart(slice()));
    parts.emplace_back(slice(start, start + n_));
    return index(x, std::move(parts));
  }
  Array shifted(const Array& x) const {
    Shape extents = x.shape();
    extents[dim_] = 1;
    return concatenate({zeros(extents, x.dtype()), x}, dim_);
  }

  Array cosines(const Array& x) const {
    const auto n = static_cast<double>(n_);
    switch (type_) {
      case 1: return 2 * part(real(transformed(x * only_at({0, n_ - 1}, 0.5), 2 * n_ - 2)), 0);
      case 2: return 2 * real(part(transformed(x, 2 * n_), 0) * turned(n_, 0, 2 * n));
      case 3: return 2 * part(real(transformed(x * only_at({0}, 0.5) * turned(n_, 0, 2 * n), 2 * n_)), 0);
      default:
        return 2 * real(part(transformed(x * turned(n_, 0, 2 * n), 2 * n_), 0) * turned(n_, 0.5, 2 * n));
    }
  }
  Array sines(const Array& x) const {
    const auto n = static_cast<double>(n_);
    switch (type_) {
      case 1: return -2 * part(imag(transformed(shifted(x), 2 * n_ + 2)), 1);
      case 2: return -2 * imag(part(transformed(x, 2 * n_), 1) * turned(n_, 1, 2 * n));
      case 3: {
        const Array halved = x * only_at({n_ - 1}, 0.5) * turned(n_, 1, 2 * n);
        return -2 * part(imag(transformed(shifted(halved), 2 * n_)), 0);
      }
      default:
        return -2 * imag(part(transformed(x * turned(n_, 0, 2 * n), 2 * n_), 0) * turned(n_, 0.5, 2 * n));
    }
  }

  Array x_;
  Wave wave_;
  int type_, dim_;
  std::int64_t n_;
  bool orthonormal_;
};

Array checked(const Operand& x, const CosineOptions& o) {
  check_usable(x.array);
  if (is_complex(x.array.dtype()))
    throw DtypeError(call_text() + ": the operand has the dtype " + name(x.array.dtype()) +
                     "; transform real(x) and imag(x), or use fft");
  if (o.type < 1 || o.type > 4)
    throw ArgumentError(call_text() + ": the type is " + std::to_string(o.type) + "; there are 1, 2, 3, 4");
  if (o.norm != "backward" && o.norm != "ortho" && o.norm != "forward")
    throw ArgumentError(call_text() + ": norm is '" + o.norm +
                        "'; it must be 'backward', 'ortho' or 'forward'");
  const Dtype dtype = x.array.dtype();
  return is_inexact(dtype) && !is_half(dtype) ? x.array : cast_to(x.array, float32);
}

Array transform(const Operand& operand, Wave wave, const CosineOptions& o, bool inverse) {
  const Array x = checked(operand, o);
  const int type = !inverse ? o.type : o.type == 2 ? 3 : o.type == 3 ? 2 : o.type;
  const Line line(x, wave, type, o.axis, o.norm == "ortho");
  const Array result = line.run();
  if (o.norm != (inverse ? "backward" : "forward")) return result;
  return result * (0.5 / static_cast<double>(line.half()));
}

Array along_axes(const Operand& x, const Axes& axes, CosineOptions o, bool inverse) {
  Array result = checked(x, o);
  for (const int dim : checked_dims(axes.values, result.ndim(), true)) {
    o.axis = dim;
    result = transform(Operand(result, x.where), Wave::cosine, o, inverse);
  }
  return result;
}

}  // namespace

Array dct(const Operand& x, CosineOptions options) {
  const Call call("dct", x.where);
  return transform(x, Wave::cosine, options, false);
}
Array idct(const Operand& x, CosineOptions options) {
  const Call call("idct", x.where);
  return transform(x, Wave::cosine, options, true);
}
Array dst(const Operand& x, CosineOptions options) {
  const Call call("dst", x.where);
  return transform(x, Wave::sine, options, false);
}
Array idst(const Operand& x, CosineOptions options) {
  const Call call("idst", x.where);
  return transform(x, Wave::sine, options, true);
}
Array dctn(const Operand& x, Axes axes, int type, const std::string& norm) {
  const Call call("dctn", x.where);
  return along_axes(x, axes, {.type = type, .axis = -1, .norm = norm}, false);
}
Array idctn(const Operand& x, Axes axes, int type, const std::string& norm) {
  const Call call("idctn", x.where);
  return along_axes(x, axes, {.type = type, .axis = -1, .norm = norm}, true);
}

}  // namespace tessera::fft
