// Elementwise ops on complex64 and complex128. Order is lexicographic, NaN is "some part is NaN" (NumPy).
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/independent.hpp"
#include "kernels/elementwise/map_table.hpp"

namespace tessera::kernels {
namespace {

template <class C> using Real = typename C::value_type;

template <class C, class R, auto f> void map1(const void* const* in, void* out, std::int64_t n) {
  const C* a = static_cast<const C*>(in[0]);
  R* r = static_cast<R*>(out);
  for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i]);
}
template <class C, class R, auto f> void map2(const void* const* in, void* out, std::int64_t n) {
  const C* a = static_cast<const C*>(in[0]);
  const C* b = static_cast<const C*>(in[1]);
  R* r = static_cast<R*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = f(a[i], b[i]);
}

template <class C> C times(C a, C b) {
  return C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}

// Smith's division: scales by the divisor's larger part, which avoids early overflow and underflow.
template <class C> C over(C a, C b) {
  using R = Real<C>;
  const R br = b.real(), bi = b.imag();
  if (std::abs(br) >= std::abs(bi)) {
    if (br == 0 && bi == 0) return C(a.real() / std::abs(br), a.imag() / std::abs(br));
    const R ratio = bi / br, divisor = br + bi * ratio;
    return C((a.real() + a.imag() * ratio) / divisor, (a.imag() - a.real() * ratio) / divisor);
  }
  const R ratio = br / bi, divisor = bi + br * ratio;
  return C((a.real() * ratio + a.imag()) / divisor, (a.imag() * ratio - a.real()) / divisor);
}

template <class C> bool has_nan(C a) { return std::isnan(a.real()) || std::isnan(a.imag()); }
template <class C> bool less(C a, C b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
}
template <class C> bool less_equal(C a, C b) {
  return a.real() < b.real() || (a.real() == b.real() && a.imag() <= b.imag());
}
template <class C> C maximum(C a, C b) { return has_nan(a) || (!has_nan(b) && less(b, a)) ? a : b; }
template <class C> C minimum(C a, C b) { return has_nan(a) || (!has_nan(b) && less(a, b)) ? a : b; }

// The other operand where one has a NaN; if both have, the second.
template <auto chosen, class C> C among_numbers(C a, C b) {
  return has_nan(a) ? b : has_nan(b) ? a : chosen(a, b);
}

template <class C> C power(C a, C b) {
  if (b == C(0)) return C(1);
  if (b == C(2)) return times(a, a);
  if (a == C(0))
    return b.real() > 0
               ? C(0)
               : C(std::numeric_limits<Real<C>>::quiet_NaN(), std::numeric_limits<Real<C>>::quiet_NaN());
  // Small integer exponents multiply: exact if the result is, and as users expect of z ** 2.
  if (b.imag() == 0 && b.real() == std::trunc(b.real()) && std::abs(b.real()) <= 64) {
    C result(1), factor = a;
    for (auto left = static_cast<unsigned>(std::abs(b.real())); left != 0; left >>= 1) {
      if (left & 1) result = times(result, factor);
      factor = times(factor, factor);
    }
    return b.real() < 0 ? over(C(1), result) : result;
  }
  return std::pow(a, b);
}

// log(1 + z) and exp(z) - 1 without cancellation near 0.
template <class C> C log1p(C z) {
  using R = Real<C>;
  const R x = z.real(), y = z.imag();
  if (std::abs(x) > R(0.5) || std::abs(y) > R(0.5)) return std::log(C(1) + z);
  return C(std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x));
}
// Squares, by an operand of which every element is 2, are products.
template <class C> void power_map(const void* const* in, void* out, std::int64_t n) {
  const C *a = static_cast<const C*>(in[0]), *b = static_cast<const C*>(in[1]);
  int is_square = 1;
  for (std::int64_t i = 0; i < n; ++i) is_square &= int{b[i].real() == 2} & int{b[i].imag() == 0};
  if (is_square == 0) return map2<C, C, power<C>>(in, out, n);
  C* r = static_cast<C*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = times(a[i], a[i]);
}

template <class C> C expm1(C z) {
  using R = Real<C>;
  const R half_sine = std::sin(z.imag() / 2), rise = std::expm1(z.real());
  if (!std::isfinite(rise) || !std::isfinite(z.imag())) return std::exp(z) - C(1);
  const R real = rise * std::cos(z.imag()) - 2 * half_sine * half_sine + R(0);  // + 0 turns -0 into 0
  return C(real, (rise + 1) * std::sin(z.imag()));
}

// For large |real part| the limit is 1 or -1, with an imaginary zero that has z's sign (array API standard).
template <class C> C tanh(C z) {
  using R = Real<C>;
  if (std::isinf(z.real()) && std::isfinite(z.imag()))
    return C(std::copysign(R(1), z.real()), std::copysign(R(0), z.imag()));
  return std::tanh(z);
}

template <class C> void where(const void* const* in, void* out, std::int64_t n) {
  const std::uint8_t* condition = static_cast<const std::uint8_t*>(in[0]);
  const C* a = static_cast<const C*>(in[1]);
  const C* b = static_cast<const C*>(in[2]);
  C* r = static_cast<C*>(out);
  for (std::int64_t i = 0; i < n; ++i) r[i] = condition[i] ? a[i] : b[i];
}
template <class C> void clip(const void* const* in, void* out, std::int64_t n) {
  const C *x = static_cast<const C*>(in[0]), *low = static_cast<const C*>(in[1]),
          *high = static_cast<const C*>(in[2]);
  C* r = static_cast<C*>(out);
  for (std::int64_t i = 0; i < n; ++i) r[i] = minimum(maximum(x[i], low[i]), high[i]);
}
template <class C> void copy(const void* const* in, void* out, std::int64_t n) {
  if (in[0] != out && n > 0) std::memmove(out, in[0], n * sizeof(C));
}
template <class C> void join(const void* const* in, void* out, std::int64_t n) {
  const Real<C>* re = static_cast<const Real<C>*>(in[0]);
  const Real<C>* im = static_cast<const Real<C>*>(in[1]);
  Real<C>* r = static_cast<Real<C>*>(out);
  for (std::int64_t i = 0; i < n; ++i) r[2 * i] = re[i], r[2 * i + 1] = im[i];
}

template <class C> void add_arithmetic(MapTable& table) {
  using R = Real<C>;
  constexpr Dtype d = dtype_of<C>();
  table.add(map<"add">, 2, d, map2<C, C, [](C a, C b) { return a + b; }>);
  table.add(map<"subtract">, 2, d, map2<C, C, [](C a, C b) { return a - b; }>);
  table.add(map<"power">, 2, d, power_map<C>);
  table.add(map<"maximum">, 2, d, map2<C, C, maximum<C>>);
  table.add(map<"minimum">, 2, d, map2<C, C, minimum<C>>);
  table.add(map<"fmax">, 2, d, map2<C, C, among_numbers<maximum<C>, C>>);
  table.add(map<"fmin">, 2, d, map2<C, C, among_numbers<minimum<C>, C>>);
  table.add(map<"negative">, 1, d, map1<C, C, [](C a) { return -a; }>);
  table.add(map<"square">, 1, d, map1<C, C, [](C a) { return times(a, a); }>);
  table.add(map<"sign">, 1, d, map1<C, C, [](C a) { return a == C(0) ? C(0) : a / std::abs(a); }>);
  table.add(map<"real">, 1, d, map1<C, R, [](C a) { return a.real(); }>, dtype_of<R>());
  table.add(map<"imag">, 1, d, map1<C, R, [](C a) { return a.imag(); }>, dtype_of<R>());
  table.add(map<"copy">, 1, d, copy<C>);
  table.add(map<"where">, 3, d, where<C>);
  table.add(map<"clip">, 3, d, clip<C>);
  table.add(map<"complex">, 2, dtype_of<R>(), join<C>, dtype_of<C>());
}

template <class C> void add_tests(MapTable& table) {
  using B = std::uint8_t;
  constexpr Dtype d = dtype_of<C>();
  table.add(map<"isnan">, 1, d, map1<C, B, [](C a) -> B { return has_nan(a); }>, bool_);
  table.add(map<"isinf">, 1, d,
            map1<C, B, [](C a) -> B { return std::isinf(a.real()) || std::isinf(a.imag()); }>, bool_);
  table.add(map<"isfinite">, 1, d,
            map1<C, B, [](C a) -> B { return std::isfinite(a.real()) && std::isfinite(a.imag()); }>, bool_);
  table.add(map<"logical_not">, 1, d, map1<C, B, [](C a) -> B { return a == C(0); }>, bool_);
  table.add(map<"logical_and">, 2, d, map2<C, B, [](C a, C b) -> B { return a != C(0) && b != C(0); }>,
            bool_);
  table.add(map<"logical_or">, 2, d, map2<C, B, [](C a, C b) -> B { return a != C(0) || b != C(0); }>, bool_);
  table.add(map<"logical_xor">, 2, d, map2<C, B, [](C a, C b) -> B { return (a != C(0)) != (b != C(0)); }>,
            bool_);
  table.add(map<"equal">, 2, d, map2<C, B, [](C a, C b) -> B { return a == b; }>, bool_);
  table.add(map<"not_equal">, 2, d, map2<C, B, [](C a, C b) -> B { return a != b; }>, bool_);
  table.add(map<"less">, 2, d, map2<C, B, [](C a, C b) -> B { return less(a, b); }>, bool_);
  table.add(map<"less_equal">, 2, d, map2<C, B, [](C a, C b) -> B { return less_equal(a, b); }>, bool_);
  table.add(map<"greater">, 2, d, map2<C, B, [](C a, C b) -> B { return less(b, a); }>, bool_);
  table.add(map<"greater_equal">, 2, d, map2<C, B, [](C a, C b) -> B { return less_equal(b, a); }>, bool_);
}

template <class C> void add_functions(MapTable& table) {
  using R = Real<C>;
  constexpr Dtype d = dtype_of<C>();
  table.add(map<"exp">, 1, d, map1<C, C, [](C a) { return std::exp(a); }>);
  table.add(map<"exp2">, 1, d, map1<C, C, [](C a) { return std::exp(a * R(0.69314718055994530942)); }>);
  table.add(map<"expm1">, 1, d, map1<C, C, expm1<C>>);
  table.add(map<"log">, 1, d, map1<C, C, [](C a) { return std::log(a); }>);
  table.add(map<"log2">, 1, d, map1<C, C, [](C a) { return std::log(a) / R(0.69314718055994530942); }>);
  table.add(map<"log10">, 1, d, map1<C, C, [](C a) { return std::log(a) / R(2.30258509299404568402); }>);
  table.add(map<"log1p">, 1, d, map1<C, C, log1p<C>>);
  table.add(map<"sqrt">, 1, d, map1<C, C, [](C a) { return std::sqrt(a); }>);
  table.add(map<"rsqrt">, 1, d, map1<C, C, [](C a) { return over(C(1), std::sqrt(a)); }>);
  table.add(map<"sin">, 1, d, map1<C, C, [](C a) { return std::sin(a); }>);
  table.add(map<"cos">, 1, d, map1<C, C, [](C a) { return std::cos(a); }>);
  table.add(map<"tan">, 1, d, map1<C, C, [](C a) { return std::tan(a); }>);
  table.add(map<"asin">, 1, d, map1<C, C, [](C a) { return std::asin(a); }>);
  table.add(map<"acos">, 1, d, map1<C, C, [](C a) { return std::acos(a); }>);
  table.add(map<"atan">, 1, d, map1<C, C, [](C a) { return std::atan(a); }>);
  table.add(map<"sinh">, 1, d, map1<C, C, [](C a) { return std::sinh(a); }>);
  table.add(map<"cosh">, 1, d, map1<C, C, [](C a) { return std::cosh(a); }>);
  table.add(map<"tanh">, 1, d, map1<C, C, tanh<C>>);
  table.add(map<"asinh">, 1, d, map1<C, C, [](C a) { return std::asinh(a); }>);
  table.add(map<"acosh">, 1, d, map1<C, C, [](C a) { return std::acosh(a); }>);
  table.add(map<"atanh">, 1, d, map1<C, C, [](C a) { return std::atanh(a); }>);
  table.add(map<"sigmoid">, 1, d, map1<C, C, [](C a) { return over(C(1), C(1) + std::exp(-a)); }>);
}

template <class C> void add_maps(MapTable& table) {
  add_arithmetic<C>(table);
  add_tests<C>(table);
  add_functions<C>(table);
}

}  // namespace

void add_complex_maps(MapTable& table) {
  add_maps<std::complex<float>>(table);
  add_maps<std::complex<double>>(table);
}

}  // namespace tessera::kernels
