// Ranges, windows, and elementwise functions composed of others.
#include <tessera/ops/numeric.hpp>

#include <cmath>
#include <limits>

#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

constexpr double pi = 3.14159265358979323846;

// Angles 2 pi i / (n - 1); a window of one value is 1.
template <class F> Array window(std::int64_t n, Dtype dtype, const F& of_angle) {
  if (n < 0) throw ArgumentError(call_text() + ": the size " + std::to_string(n) + " is negative");
  if (n <= 1) return ones({n}, dtype);
  const Array i = astype(arange_of(std::int64_t{0}, n, std::int64_t{1}, int64), float64);
  return astype(of_angle(i * (2 * pi / static_cast<double>(n - 1))), dtype);
}

double largest(Dtype dtype) {
  return kernels::visit_real(real_dtype(dtype),
                             []<class T>(T) { return static_cast<double>(std::numeric_limits<T>::max()); });
}

}  // namespace

Array logspace(double start, double stop, std::int64_t num, double base, Dtype dtype,
               std::source_location where) {
  const Call call("logspace", where);
  return astype(power(base, linspace(start, stop, num, float64)), dtype);
}
Array geomspace(double start, double stop, std::int64_t num, Dtype dtype, std::source_location where) {
  const Call call("geomspace", where);
  if (start == 0 || stop == 0 || (start < 0) != (stop < 0))
    throw ArgumentError(call_text() + ": from " + std::to_string(start) + " to " + std::to_string(stop) +
                        " no equal factors lead; both must not be 0, and have one sign");
  const double sign = start < 0 ? -1 : 1;
  const Array at = linspace(std::log(start * sign), std::log(stop * sign), num, float64), i = arange(num);
  const Array inner = sign * exp(at);
  return astype(tessera::where(i == 0, start, tessera::where(i == num - 1, stop, inner)), dtype);
}

Array bartlett(std::int64_t n, Dtype dtype, std::source_location where) {
  const Call call("bartlett", where);
  return window(n, dtype, [](const Array& t) { return 1 - abs(t / pi - 1); });
}
Array blackman(std::int64_t n, Dtype dtype, std::source_location where) {
  const Call call("blackman", where);
  return window(n, dtype, [](const Array& t) { return 0.42 - 0.5 * cos(t) + 0.08 * cos(2 * t); });
}
Array hamming(std::int64_t n, Dtype dtype, std::source_location where) {
  const Call call("hamming", where);
  return window(n, dtype, [](const Array& t) { return 0.54 - 0.46 * cos(t); });
}
Array hanning(std::int64_t n, Dtype dtype, std::source_location where) {
  const Call call("hanning", where);
  return window(n, dtype, [](const Array& t) { return 0.5 - 0.5 * cos(t); });
}

Array angle(const Operand& x, bool degrees) {
  const Call call("angle", x.where);
  check_usable(x.array);
  const Array a = atan2(imag(x), real(x));
  return degrees ? a * (180 / pi) : a;
}
Array sinc(const Operand& x) {
  const Call call("sinc", x.where);
  check_usable(x.array);
  const Array t = x.array * pi, is_zero = t == 0;
  // Both branches are computed: the one not selected must not divide by 0, nor its derivative.
  const Array safe = where(is_zero, ones_like(t), t);
  return where(is_zero, 1 - t * t / 6, sin(safe) / safe);
}
Array heaviside(const Operand& x, const Operand& at_zero) {
  const Call call("heaviside", x.where);
  check_usable(x.array);
  check_usable(at_zero.array);
  const Dtype dtype = to_inexact(promote(WeakDtype{x.array.dtype(), x.array.is_weakly_typed()},
                                         WeakDtype{at_zero.array.dtype(), at_zero.array.is_weakly_typed()})
                                     .dtype);
  const Array a = cast_to(x.array, dtype), h = cast_to(at_zero.array, dtype);
  return where(a == 0, h, where(isnan(a), a, where(a > 0, ones_like(a), zeros_like(a))));
}
Array nan_to_num(const Operand& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  const Call call("nan_to_num", x.where);
  check_usable(x.array);
  const Array& a = x.array;
  if (!is_inexact(a.dtype())) return a;
  if (is_complex(a.dtype()))
    return make_complex(nan_to_num(real(a), nan, posinf, neginf), nan_to_num(imag(a), nan, posinf, neginf));
  const double most = largest(a.dtype());
  const auto number = [&](double value) { return astype(value, a.dtype()); };
  const Array finite = where(isnan(a), number(nan), a);
  const Array bounded = where(isinf(a) & (a > 0), number(posinf.value_or(most)), finite);
  return where(isinf(a) & (a < 0), number(neginf.value_or(-most)), bounded);
}
Array rad2deg(const Operand& x) {
  const Call call("rad2deg", x.where);
  return x.array * (180 / pi);
}
Array deg2rad(const Operand& x) {
  const Call call("deg2rad", x.where);
  return x.array * (pi / 180);
}

}  // namespace tessera
