// Special functions of float32 and float64, computed one element at a time in double or wider, and functions
// of integers. A series and a continued fraction are each used where they converge quickly (Abramowitz and
// Stegun, 6.5, 26.5; Numerical Recipes, 6.2 and 6.4; Cephes for zeta).
#include "kernels/elementwise/maps_special.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <type_traits>

namespace tessera::kernels {
namespace {

using Wide = long double;
template <class W> constexpr W nan_of = std::numeric_limits<W>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
// The type that results of type T are computed in: W below.
template <class T> using Intermediate = std::conditional_t<std::is_same_v<T, float>, double, Wide>;
template <class W> constexpr W tiny = std::is_same_v<W, double> ? 1e-300L : 1e-4000L;
template <class W> constexpr W enough = std::is_same_v<W, double> ? 1e-17L : 1e-19L;
constexpr int most_terms = 20000;

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}
Wide log_gamma(Wide x) {
  int sign = 0;
  return lgammal_r(x, &sign);
}

// ---- the incomplete gamma function ----
// x^a e^-x / gamma(a) times a sum of positive terms.
template <class W> W gamma_series(W a, W x) {
  W term = 1 / a, sum = term;
  for (int n = 1; n < most_terms && term > sum * enough<W>; ++n) sum += term *= x / (a + n);
  return sum * std::exp(a * std::log(x) - x - log_gamma(a));
}
// The upper part, by Lentz's algorithm.
template <class W> W gamma_fraction(W a, W x) {
  W b = x + 1 - a, c = 1 / tiny<W>, d = 1 / b, h = d;
  for (int n = 1; n < most_terms; ++n) {
    const W an = -n * (n - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < tiny<W>) d = tiny<W>;
    c = b + an / c;
    if (std::abs(c) < tiny<W>) c = tiny<W>;
    d = 1 / d;
    const W step = d * c;
    h *= step;
    if (std::abs(step - 1) < enough<W>) break;
  }
  return h * std::exp(a * std::log(x) - x - log_gamma(a));
}
template <class W, std::size_t n> W polynomial(const double (&coefficients)[n], W x) {
  W sum = 0;
  for (std::size_t k = n; k-- > 0;) sum = sum * x + static_cast<W>(coefficients[k]);
  return sum;
}
// The lower or the upper part for x near a large a, where the others need sqrt(a) terms (Temme; DLMF 8.12): a
// normal distribution at eta, eta^2 / 2 = mu - log(1 + mu) with mu = x / a - 1, and a series in 1 / a whose
// coefficients are series in eta.
constexpr int large_a = 10000;
template <class W> W gamma_near(W a, W x, bool upper) {
  static constexpr double c0[] = {
      -1.0 / 3,           1.0 / 12,           -2.0 / 135,        1.0 / 864,          0.00035273368606701942,
      -1.787551440329e-4, 3.919263178522e-5,  -2.18544851068e-6, -1.85406221071e-6,  8.2967113409530865e-07,
      -1.76659527368e-7,  6.707853543401e-09, 1.026180978424e-8, -4.38203601845e-09, 9.1476995822e-10};
  static constexpr double c1[] = {-1.0 / 540,         -1.0 / 288,        1.0 / 378,
                                  -77.0 / 77760,      2.05761316872e-04, -4.018775720164e-07,
                                  -1.80985503345e-05, 7.64916091608e-06};
  static constexpr double c2[] = {25.0 / 6048, -139.0 / 51840, 1.0 / 1296, 1.0 / 497664};
  const W mu = (x - a) / a;
  const W half_square = std::abs(mu) < W(1e-4L)
                            ? mu * mu * (W(0.5L) - mu * (1 / W(3) - mu * (W(0.25L) - mu / 5)))
                            : mu - std::log1p(mu);
  const W eta = std::copysign(std::sqrt(2 * half_square), mu);
  const W correction = std::exp(-a * half_square) / std::sqrt(2 * std::numbers::pi_v<W> * a) *
                       (polynomial(c0, eta) + (polynomial(c1, eta) + polynomial(c2, eta) / a) / a);
  const W side = upper ? W(1) : W(-1);
  return std::erfc(side * eta * std::sqrt(a / 2)) / 2 + side * correction;
}
// The lower or the upper part; computed as 1 - the other if that loses no digits.
template <class W> W incomplete_gamma(W a, W x, bool upper) {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0)) return nan_of<W>;
  if (a == 0) return upper ? 0 : 1;
  if (x == 0) return upper ? 1 : 0;
  if (std::isinf(x)) return std::isinf(a) ? nan_of<W> : upper ? 0 : 1;
  if (std::isinf(a)) return upper ? 1 : 0;
  if (a > large_a && std::abs(x - a) < a / 2) return gamma_near(a, x, upper);
  const bool has_lower = x < a + 1;
  const W part = has_lower ? gamma_series(a, x) : gamma_fraction(a, x);
  return has_lower != upper ? part : 1 - part;
}

// ---- the incomplete beta function ----
Wide beta_fraction(Wide a, Wide b, Wide x) {
  Wide c = 1, d = 1 - (a + b) * x / (a + 1);
  if (std::abs(d) < tiny<Wide>) d = tiny<Wide>;
  d = 1 / d;
  Wide h = d;
  for (int m = 1; m < most_terms; ++m) {
    const Wide even = m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m)),
               odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m));
    Wide step = 1;
    for (const Wide numerator : {even, odd}) {
      d = 1 + numerator * d;
      if (std::abs(d) < tiny<Wide>) d = tiny<Wide>;
      c = 1 + numerator / c;
      if (std::abs(c) < tiny<Wide>) c = tiny<Wide>;
      d = 1 / d;
      step = d * c;
      h *= step;
    }
    if (std::abs(step - 1) < enough<Wide>) break;
  }
  return h;
}
Wide incomplete_beta(Wide a, Wide b, Wide x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b)) return nan_of<Wide>;
  if (x == 0 || x == 1) return x;
  const Wide front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The derivative of f at p > 0 by two central differences; the second cancels the leading error of the first.
// Good to about 1e-12 of f in a 64-bit mantissa. The functions change within sqrt(p) of a large p.
template <class F> Wide slope(const F& f, Wide p) {
  const Wide h = 2e-4L * std::min(p, 10 * std::sqrt(p));
  const auto difference = [&](Wide step) { return (f(p + step) - f(p - step)) / (2 * step); };
  return (4 * difference(h / 2) - difference(h)) / 3;
}

// ---- zeta(s, q) = sum of (q + k)^-s: the first terms, then the Euler-Maclaurin formula ----
template <class W> double hurwitz_zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return nan_of<double>;
  if (s == 1) return infinity;
  if (s < 1) return nan_of<double>;
  if (q <= 0) {
    if (q == std::floor(q)) return infinity;
    if (s != std::floor(s)) return nan_of<double>;  // a power of a negative number
  }
  if (std::isinf(q)) return 0;
  constexpr double most_terms_below_zero = -1e4;
  if (q < most_terms_below_zero) {  // the terms of negative numbers are the beginning of another such sum
    const double above = q - std::floor(q), sign = std::fmod(s, 2) == 0 ? 1 : -1;
    return hurwitz_zeta<W>(s, above) + sign * hurwitz_zeta<W>(s, 1 - above) -
           sign * hurwitz_zeta<W>(s, 1 - q);
  }
  constexpr Wide over[] = {12,
                           -720,
                           30240,
                           -1209600,
                           47900160,
                           -1307674368000.0L / 691,
                           74724249600.0L,
                           -10670622842880000.0L / 3617,
                           5109094217170944000.0L / 43867,
                           -802857662698291200000.0L / 174611};
  // The formula's terms fall where a is beyond s / (2 pi); for a large s the sum ends before.
  W sum = 0, a = q;
  constexpr W few = 12;
  do {
    const W term = std::pow(a, -W(s));
    sum += term;
    if (!std::isfinite(sum)) return static_cast<double>(sum);
    a += 1;
    if (s > few && a > few && term * a <= enough<W> * std::abs(sum)) return static_cast<double>(sum);
  } while (a <= std::max<W>(few, s));
  const W last = std::pow(a, -W(s));
  sum += last * a / (W(s) - 1) + last / 2;
  W factor = W(s), power = last / a;
  for (int k = 0; k < 10; ++k) {
    const W term = factor * power / static_cast<W>(over[k]);
    sum += term;
    if (std::abs(term) < enough<W> * std::abs(sum)) break;
    factor *= (W(s) + 2 * k + 1) * (W(s) + 2 * k + 2);
    power /= a * a;
  }
  return static_cast<double>(sum);
}

template <class W> double nth_digamma(double n, double x) {
  if (!(n >= 1) || n != std::floor(n)) return nan_of<double>;  // n = 0 is digamma, handled by the caller
  const double sign = std::fmod(n, 2) == 1 ? 1 : -1;
  return sign * std::tgamma(n + 1) * hurwitz_zeta<W>(n + 1, x);
}

// x^a e^-x and gamma(a) cancel digits where a is large.
template <class T, bool upper> struct IncompleteGamma {
  static double of(double a, double x) {
    return a < 1e5 ? static_cast<double>(incomplete_gamma<Intermediate<T>>(a, x, upper))
                   : static_cast<double>(incomplete_gamma<Wide>(a, x, upper));
  }
};
template <class> struct GammaByA {
  static double of(double a, double x) {
    if (!(a > 0) || !(x >= 0)) return nan_of<double>;
    if (x == 0 || std::isinf(x) || std::isinf(a)) return 0;
    // Differentiates the part that is not near 1, because it keeps the digits of the difference.
    const bool upper = x >= a + 1;
    const auto by_a = slope([&](Wide p) { return incomplete_gamma<Wide>(p, x, upper); }, a);
    return static_cast<double>(upper ? -by_a : by_a);
  }
};
struct IncompleteBeta {
  static double of(double a, double b, double x) { return static_cast<double>(incomplete_beta(a, b, x)); }
};
struct BetaByA {
  static double of(double a, double b, double x) {
    if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return nan_of<double>;
    if (x == 0 || x == 1) return 0;
    return static_cast<double>(slope([&](Wide p) { return incomplete_beta(p, b, x); }, a));
  }
};
template <class T> struct Zeta {
  static double of(double s, double q) { return hurwitz_zeta<Intermediate<T>>(s, q); }
};
template <class T> struct Polygamma {
  static double of(double n, double x) { return nth_digamma<Intermediate<T>>(n, x); }
};
template <class T> using LowerGamma = IncompleteGamma<T, false>;
template <class T> using UpperGamma = IncompleteGamma<T, true>;
template <class F, class T> void apply2(const void* const* in, void* out, std::int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = static_cast<T>(F::of(a[i], b[i]));
}
template <class F, class T> void apply3(const void* const* in, void* out, std::int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]),
          *c = static_cast<const T*>(in[2]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = static_cast<T>(F::of(a[i], b[i], c[i]));
}
template <template <class> class F> void add2(MapTable& table, Map& map) {
  table.add(map, 2, float32, apply2<F<float>, float>);
  table.add(map, 2, float64, apply2<F<double>, double>);
}
template <class F> void add3(MapTable& table, Map& map) {
  table.add(map, 3, float32, apply3<F, float>);
  table.add(map, 3, float64, apply3<F, double>);
}

// The magnitude as an unsigned number, which the most negative one needs. Wraps as integers do.
template <class T> auto magnitude(T x) {
  using U = std::make_unsigned_t<T>;
  return x < T(0) ? static_cast<U>(U(0) - static_cast<U>(x)) : static_cast<U>(x);
}
struct Gcd {
  template <class T> static T of(T a, T b) { return static_cast<T>(std::gcd(magnitude(a), magnitude(b))); }
};
struct Lcm {
  template <class T> static T of(T a, T b) {
    using U = std::make_unsigned_t<T>;
    const U m = magnitude(a), n = magnitude(b);
    return m == 0 || n == 0
               ? T(0)
               : static_cast<T>(static_cast<U>(static_cast<std::uint64_t>(m / std::gcd(m, n)) * n));
  }
};
struct IntegerFmod {
  template <class T> static T of(T a, T b) {
    if (b == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return T(0);  // the quotient of the least number overflows
    return static_cast<T>(a % b);
  }
};
struct PopulationCount {
  template <class T> static T of(T x) {
    return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};
template <class F, class T> void integers1(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = F::of(a[i]);
}
template <class F, class T> void integers2(const void* const* in, void* out, std::int64_t n) {
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = F::of(a[i], b[i]);
}
template <class... T> void add_integers(MapTable& table) {
  (table.add(map<"gcd">, 2, dtype_of<T>(), integers2<Gcd, T>), ...);
  (table.add(map<"lcm">, 2, dtype_of<T>(), integers2<Lcm, T>), ...);
  (table.add(map<"fmod">, 2, dtype_of<T>(), integers2<IntegerFmod, T>), ...);
  (table.add(map<"population_count">, 1, dtype_of<T>(), integers1<PopulationCount, T>), ...);
}

}  // namespace

void add_special_maps(MapTable& table) {
  add2<LowerGamma>(table, map<"igamma">);
  add2<UpperGamma>(table, map<"igammac">);
  add2<GammaByA>(table, map<"igamma_grad_a">);
  add3<IncompleteBeta>(table, map<"betainc">);
  add3<BetaByA>(table, map<"betainc_grad_a">);
  add2<Zeta>(table, map<"zeta">);
  add2<Polygamma>(table, map<"polygamma">);
  add_integers<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
               std::uint32_t, std::uint64_t>(table);
}

}  // namespace tessera::kernels
