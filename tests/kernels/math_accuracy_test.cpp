// The largest error of each function, in units of the last place of the result, over its whole range of
// float32 bit patterns (a sample of 260,000) and over random float64 arguments. The bounds are the measured
// maxima, rounded up.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "base/settings.hpp"
#include "kernels/values.hpp"
#include "ops/elementwise/define.hpp"

namespace tessera::kernels {
namespace {

using testing::find_map;
using testing::same;

template <class T> double ulps(T got, long double expected) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got) ? 0 : 1e30;
  const T rounded = static_cast<T>(expected);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0
           : std::isinf(rounded) && std::isfinite(got) && std::abs(got) == std::numeric_limits<T>::max()
               ? 1
               : 1e30;
  const T magnitude = std::max(std::abs(rounded), std::numeric_limits<T>::min());
  const long double unit =
      static_cast<long double>(magnitude) - static_cast<long double>(std::nextafter(magnitude, T(0)));
  return static_cast<double>(std::abs(static_cast<long double>(got) - expected) / unit);
}

// Bit patterns of the whole type, evenly spread, then the edge values.
template <class T> std::vector<T> arguments() {
  using K = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::vector<T> values = testing::edges<T>();
  const K step = sizeof(T) == 4 ? K{16411} : static_cast<K>(0x0001'0001'0003'0007ull);
  for (K bits = 0;; bits += step) {
    values.push_back(std::bit_cast<T>(bits));
    if (bits > static_cast<K>(~K{0}) - step) break;
  }
  for (int i = 0; i < 50000; ++i) values.push_back(T(20) * T(i - 25000) / T(25000));  // common arguments
  return values;
}

enum class Mode { fast, precise };
const char* word(Mode mode) { return mode == Mode::precise ? "precise" : "fast"; }
double bound_of(const ElementwiseOp& op, Mode mode) {
  return mode == Mode::precise ? op.trials.accuracy.precise_ulp : op.trials.accuracy.ulp;
}

template <class T> std::string worst_of(const ElementwiseOp& op, Mode mode) {
  const SettingScope scope("TESSERA_MATH", word(mode));
  const auto x = arguments<T>();
  std::vector<T> out(x.size());
  const void* in[] = {x.data()};
  op.row.kernel->of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  T at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(out[i], op.trials.accuracy.of_one(x[i]));
    if (error > worst) worst = error, at = x[i];
  }
  ::testing::Test::RecordProperty(
      op.def.name + (mode == Mode::precise ? "_precise" : "") + "_max_ulp_f" + std::to_string(8 * sizeof(T)),
      std::to_string(worst));
  if (worst <= bound_of(op, mode)) return "";
  std::ostringstream text;
  text << op.def.name << " f" << 8 * sizeof(T) << ": " << worst << " ulp at " << std::hexfloat << at
       << std::defaultfloat << " (" << at << ")\n";
  return text.str();
}

// Checks the error bounds stated in the rows of the ops.
template <class T> void expect_rows_of_one_within_their_bounds() {
  std::string bad;
  int tried = 0;
  for (const auto* op : elementwise_ops())
    if (op->trials.accuracy.of_one != nullptr) {
      bad += worst_of<T>(*op, Mode::fast), ++tried;
      if (bound_of(*op, Mode::precise) < bound_of(*op, Mode::fast)) bad += worst_of<T>(*op, Mode::precise);
    }
  EXPECT_EQ(bad, "");
  EXPECT_GE(tried, 20);
}
TEST(math_accuracy, float32_functions_stay_within_their_bounds_over_the_whole_range) {
  expect_rows_of_one_within_their_bounds<float>();
}
TEST(math_accuracy, float64_functions_stay_within_their_bounds_over_the_whole_range) {
  expect_rows_of_one_within_their_bounds<double>();
}

// The same arguments in another order, where each has other neighbours in its vector, give the same bits.
template <class T> void expect_the_same_bits_among_other_neighbours() {
  const auto x = arguments<T>();
  const std::size_t n = x.size(), step = 104729;  // a prime that does not divide n
  std::vector<T> moved(n), of_x(n), of_moved(n);
  for (std::size_t i = 0; i < n; ++i) moved[i] = x[i * step % n];
  const void *in[] = {x.data()}, *in_moved[] = {moved.data()};
  for (const auto* op : elementwise_ops())
    for (const Mode mode : {Mode::fast, Mode::precise}) {
      if (op->trials.accuracy.of_one == nullptr) continue;
      const SettingScope scope("TESSERA_MATH", word(mode));
      const auto map = op->row.kernel->of(dtype_of<T>());
      map(in, of_x.data(), static_cast<std::int64_t>(n));
      map(in_moved, of_moved.data(), static_cast<std::int64_t>(n));
      std::size_t other = 0;
      for (std::size_t i = 0; i < n; ++i) other += same(of_moved[i], of_x[i * step % n]) ? 0 : 1;
      EXPECT_EQ(other, 0U) << op->def.name << " f" << 8 * sizeof(T) << " " << word(mode);
    }
}
TEST(math_accuracy, bits_do_not_depend_on_neighbours) {
  expect_the_same_bits_among_other_neighbours<float>();
  expect_the_same_bits_among_other_neighbours<double>();
}

template <class T> void expect_binary_within_its_bound(const ElementwiseOp& op, Mode mode) {
  const SettingScope scope("TESSERA_MATH", word(mode));
  const auto all = arguments<T>();
  std::vector<T> x, y;
  for (std::size_t i = 0; i < all.size(); i += 7)
    x.push_back(all[i]), y.push_back(all[(i * 7919) % all.size()]);
  for (const T a : testing::edges<T>())
    for (const T b : testing::edges<T>()) x.push_back(a), y.push_back(b);
  std::vector<T> out(x.size());
  const void* in[] = {x.data(), y.data()};
  op.row.kernel->of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(ulps(out[i], op.trials.accuracy.of_two(x[i], y[i])), bound_of(op, mode))
        << op.def.name << "(" << x[i] << ", " << y[i] << ") = " << out[i];
}

// Odd functions keep the sign of zero, and of every other number but for the last place (SLEEF's asinh without
// fused multiply-adds); the result for one number does not depend on its neighbours.
template <class T> void expect_odd(const std::string& op) {
  auto x = arguments<T>();
  x.resize(x.size() / 16 * 16 + 3);  // ends with a part of a vector
  std::vector<T> turned(x), out(x.size()), of_turned(x.size());
  for (T& v : turned) v = -v;
  const auto run = [&](const std::vector<T>& in, std::vector<T>& to) {
    const void* from[] = {in.data()};
    find_map(op, dtype_of<T>())(from, to.data(), static_cast<std::int64_t>(in.size()));
  };
  run(x, out), run(turned, of_turned);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(std::isnan(out[i]) ? std::isnan(of_turned[i])
                                   : ulps(out[i], static_cast<long double>(-of_turned[i])) <= 1)
        << op << x[i];
    if (x[i] == 0) {
      ASSERT_EQ(std::signbit(out[i]), std::signbit(x[i])) << op << " of zero";
    }
    if (i % 1009 != 0) continue;
    T alone = 0;
    const void* from[] = {&x[i]};
    find_map(op, dtype_of<T>())(from, &alone, 1);
    ASSERT_TRUE(same(alone, out[i])) << op << x[i];
  }
}
TEST(math_accuracy, odd_functions_keep_signs_and_do_not_depend_on_neighbours) {
  for (const char* op : {"asinh", "atanh", "cbrt", "sinh", "tanh", "tan", "asin", "atan"}) {
    expect_odd<float>(op);
    expect_odd<double>(op);
  }
  for (const char* op : {"expm1", "log1p"})
    for (const double zero : {0.0, -0.0}) {
      const auto single = static_cast<float>(zero);
      double wide = 1;
      float narrow = 1;
      const void *in[] = {&zero}, *in_single[] = {&single};
      find_map(op, float64)(in, &wide, 1), find_map(op, float32)(in_single, &narrow, 1);
      EXPECT_TRUE(same(wide, zero) && same(narrow, single)) << op << zero;
    }
}

// C's pow at all pairs of special numbers.
template <class T> void expect_powers_of_special_numbers() {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> special = {0,
                                  -T(0),
                                  1,
                                  -1,
                                  2,
                                  -2,
                                  3,
                                  T(0.5),
                                  -T(0.5),
                                  T(-2.5),
                                  inf,
                                  -inf,
                                  nan,
                                  T(16777215),
                                  T(-16777217),
                                  T(1e30),
                                  T(-1e-30),
                                  std::numeric_limits<T>::max(),
                                  std::numeric_limits<T>::denorm_min(),
                                  -std::numeric_limits<T>::denorm_min(),
                                  std::numeric_limits<T>::min()};
  std::vector<T> x, y;
  for (const T a : special)
    for (const T b : special) x.push_back(a), y.push_back(b);
  std::vector<T> out(x.size());
  const void* in[] = {x.data(), y.data()};
  map<"power">.of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T expected = std::pow(x[i], y[i]);
    ASSERT_LE(ulps(out[i], static_cast<long double>(expected)), 2)
        << x[i] << " ^ " << y[i] << " = " << out[i];
    if (expected == 0) {
      ASSERT_EQ(std::signbit(out[i]), std::signbit(expected)) << x[i] << " ^ " << y[i];
    }
    T alone = 0;
    const void* one[] = {&x[i], &y[i]};
    map<"power">.of(dtype_of<T>())(one, &alone, 1);
    ASSERT_TRUE(same(alone, out[i])) << x[i] << " ^ " << y[i];
  }
}
TEST(math_accuracy, powers_of_special_numbers) {
  expect_powers_of_special_numbers<float>();
  expect_powers_of_special_numbers<double>();
}

// Squares, cubes, roots ...: as accurate as others, and the same bits whether or not all exponents are equal.
template <class T> void expect_powers_by_one_number() {
  auto x = testing::random_values<T>(4099, 1);
  const T limits[] = {std::numeric_limits<T>::infinity(),           -std::numeric_limits<T>::infinity(),
                      std::numeric_limits<T>::quiet_NaN(),          T(-0.0),
                      std::numeric_limits<T>::denorm_min(),         std::numeric_limits<T>::max(),
                      std::cbrt(std::numeric_limits<T>::max()) / 2, std::cbrt(std::numeric_limits<T>::min()),
                      std::sqrt(std::numeric_limits<T>::max()) * 2};
  std::copy(std::begin(limits), std::end(limits), x.begin() + 100);
  const auto n = static_cast<std::int64_t>(x.size());
  for (const T exponent : {T(2), T(1), T(-1), T(3), T(0.5), T(0), T(-2), T(1.5), T(4)}) {
    std::vector<T> y(x.size(), exponent), by_one(x.size()), among_others(x.size());
    const void* in[] = {x.data(), y.data()};
    map<"power">.of(dtype_of<T>())(in, by_one.data(), n);
    for (std::size_t i = 0; i < y.size(); i += 5) y[i] = T(0.75);
    map<"power">.of(dtype_of<T>())(in, among_others.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % 5 != 0) {
        ASSERT_TRUE(same(by_one[i], among_others[i])) << x[i] << " ^ " << exponent;
      }
      const long double expected =
          std::pow(static_cast<long double>(x[i]), static_cast<long double>(exponent));
      ASSERT_LE(ulps(by_one[i], expected), 1.1) << x[i] << " ^ " << exponent << " = " << by_one[i];
      if (expected == 0) {
        ASSERT_EQ(std::signbit(by_one[i]), std::signbit(expected)) << x[i] << " ^ " << exponent;
      }
    }
  }
}
TEST(math_accuracy, powers_by_one_number) {
  expect_powers_by_one_number<float>();
  expect_powers_by_one_number<double>();
}

TEST(math_accuracy, functions_of_two_arguments) {
  for (const auto* op : elementwise_ops()) {
    if (op->trials.accuracy.of_two == nullptr) continue;
    for (const Mode mode : {Mode::fast, Mode::precise}) {
      expect_binary_within_its_bound<float>(*op, mode);
      expect_binary_within_its_bound<double>(*op, mode);
    }
  }
}

TEST(math_accuracy, logaddexp) {
  const auto logaddexp = [](long double x, long double y) {
    return x == y ? x + std::log(2.0L) : std::max(x, y) + std::log1p(std::exp(-std::abs(x - y)));
  };
  // The sum of two logarithms cancels near 0, where the error is relative to the larger operand, so only
  // same-signed ones are used here.
  const float a[] = {0, 1, 20, 700, -INFINITY, INFINITY, INFINITY, NAN, 3},
              b[] = {0, 2, 20, -700, -INFINITY, INFINITY, -INFINITY, 1, NAN};
  float out[9];
  const void* in[] = {a, b};
  map<"logaddexp">.of(float32)(in, out, 9);
  for (int i = 0; i < 9; ++i)
    EXPECT_LE(
        ulps(out[i],
             std::isnan(a[i] + b[i]) && a[i] != b[i] && !std::isinf(a[i]) ? NAN : logaddexp(a[i], b[i])),
        2)
        << a[i] << " " << b[i];
}

// exp(-x) I_order(x) of x >= 0: the power series, of positive terms, then Hankel's expansion.
long double scaled_bessel(int order, long double x) {
  long double term = order == 0 ? 1 : x / 2, sum = term;
  if (x < 60) {
    for (int k = 1; k < 1000 && term > sum * 1e-20L; ++k)
      sum += term *= x * x / 4 / (static_cast<long double>(k) * (k + order));
    return sum * std::exp(-x);
  }
  term = sum = 1;
  for (int k = 1; k < 40 && std::abs(term) > 1e-20L; ++k)
    sum += term *= -(4.0L * order * order - (2.0L * k - 1) * (2 * k - 1)) / (k * 8 * x);
  return sum / std::sqrt(2 * std::acos(-1.0L) * x);
}
template <class T> void expect_bessel(int order, bool scaled, double bound) {
  const std::string name = std::string(order == 0 ? "i0" : "i1") + (scaled ? "e" : "");
  std::vector<T> x{0, T(-0.0), std::numeric_limits<T>::denorm_min(), 8, std::nextafter(T(8), T(9)), -8};
  for (int i = 0; i < 40000; ++i) x.push_back(T(i - 10000) / T(777));
  for (T large = 1; large < T(1e30); large *= T(1.07)) x.push_back(large);
  std::vector<T> out(x.size());
  const void* in[] = {x.data()};
  find_map(name, dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double a = std::abs(x[i]);
    const long double value = scaled_bessel(order, a) * (scaled ? 1 : std::exp(a));
    ASSERT_LE(ulps(out[i], order == 1 ? std::copysign(value, x[i]) : value), bound) << name << " of " << x[i];
    ASSERT_EQ(std::signbit(out[i]), order == 1 && std::signbit(x[i])) << name << " of " << x[i];
  }
  const T infinity = std::numeric_limits<T>::infinity();
  const T ends[] = {infinity, -infinity, std::numeric_limits<T>::quiet_NaN()};
  T values[3];
  const void* end_in[] = {ends};
  find_map(name, dtype_of<T>())(end_in, values, 3);
  EXPECT_EQ(values[0], scaled ? 0 : infinity) << name;
  EXPECT_EQ(values[1], scaled ? 0 : order == 0 ? infinity : -infinity) << name;
  EXPECT_TRUE(std::isnan(values[2])) << name;
}
TEST(math_accuracy, bessel_functions_of_orders_0_and_1) {
  for (const int order : {0, 1})
    for (const bool scaled : {false, true}) {
      expect_bessel<float>(order, scaled, 0.51);
      expect_bessel<double>(order, scaled, 6);
    }
}

// erf_inv has no reference in the C library: erf(erf_inv(x)) must be x, computed in sufficient precision.
template <class T> void expect_erf_inv(double bound) {
  std::vector<T> x;
  for (int i = -99999; i <= 99999; ++i) x.push_back(T(i) / T(100000));
  for (int e = 1; e < (sizeof(T) == 4 ? 24 : 53); ++e)
    x.push_back(1 - std::ldexp(T(1), -e)), x.push_back(std::ldexp(T(1), -e) - 1),
        x.push_back(std::ldexp(T(1), -e));
  std::vector<T> out(x.size());
  const void* in[] = {x.data()};
  map<"erf_inv">.of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double y = out[i], slope = 2 / std::sqrt(std::acos(-1.0L)) * std::exp(-y * y);
    // Away from 0 the complement keeps its digits: erf(y) - x = (1 - x) - erfc(y).
    const long double residual = x[i] > T(0.5)    ? (1 - static_cast<long double>(x[i])) - std::erfc(y)
                                 : x[i] < T(-0.5) ? std::erfc(-y) - (1 + static_cast<long double>(x[i]))
                                                  : std::erf(y) - static_cast<long double>(x[i]);
    worst = std::max(worst, ulps(out[i], y - residual / slope));
  }
  EXPECT_LE(worst, bound);
  const T ends[] = {1, -1, 0, 2, std::numeric_limits<T>::quiet_NaN()};
  T values[5];
  const void* end_in[] = {ends};
  map<"erf_inv">.of(dtype_of<T>())(end_in, values, 5);
  EXPECT_EQ(values[0], std::numeric_limits<T>::infinity());
  EXPECT_EQ(values[1], -std::numeric_limits<T>::infinity());
  EXPECT_EQ(values[2], 0);
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_TRUE(std::isnan(values[4]));
}
TEST(math_accuracy, erf_inv_inverts_erf) {
  expect_erf_inv<float>(4);
  expect_erf_inv<double>(4);
}

TEST(math_accuracy, gelu_and_silu_follow_their_formulas) {
  for (int i = -800; i <= 800; ++i) {
    const double x = i / 100.0;
    double gelu = 0, silu = 0;
    const void* in[] = {&x};
    map<"gelu">.of(float64)(in, &gelu, 1);
    map<"silu">.of(float64)(in, &silu, 1);
    EXPECT_NEAR(gelu, 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1)) * (x + 0.044715 * x * x * x))),
                1e-15 * (1 + std::abs(x)));
    EXPECT_NEAR(silu, x / (1 + std::exp(-x)), 1e-15 * (1 + std::abs(x)));
  }
}

TEST(math_accuracy, lgamma_is_as_good_as_its_roots_allow) {
  const auto check = []<class T>(T) {
    const auto x = arguments<T>();
    std::vector<T> out(x.size());
    const void* in[] = {x.data()};
    map<"lgamma">.of(dtype_of<T>())(in, out.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = std::lgamma(static_cast<long double>(x[i]));
      if (x[i] < 0 && std::abs(exact) < 1) continue;  // next to a root: checked relative to 1 below
      ASSERT_LE(ulps(out[i], exact), 8) << x[i];
    }
    for (T root = T(-2.5); root < T(-2.4); root += T(0.001)) {
      T value = 0;
      const void* at[] = {&root};
      map<"lgamma">.of(dtype_of<T>())(at, &value, 1);
      EXPECT_NEAR(value, std::lgamma(static_cast<long double>(root)), 4 * std::numeric_limits<T>::epsilon());
    }
  };
  check(float{});
  check(double{});
}

TEST(math_accuracy, digamma_is_the_slope_of_lgamma) {
  const double x[] = {1, 0.5, 2, 10, 1e-3, -0.5, 1e10};
  const double exact[] = {-0.57721566490153286061, -1.9635100260214234794, 0.42278433509846713939,
                          2.2517525890667211077,   -1000.5755719318103,    0.036489973978576520559,
                          23.025850929890456840};
  double out[7];
  const void* in[] = {x};
  map<"digamma">.of(float64)(in, out, 7);
  for (int i = 0; i < 7; ++i)
    EXPECT_NEAR(out[i], exact[i], 4e-15 * std::max(1.0, std::abs(exact[i]))) << x[i];
  const double poles[] = {-1, -20, -INFINITY, NAN};
  const void* pole_in[] = {poles};
  map<"digamma">.of(float64)(pole_in, out, 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(out[i])) << poles[i];
}

template <class C> void expect_complex(const char* op,
                                       std::complex<long double> (*exact)(std::complex<long double>),
                                       double bound) {
  using R = typename C::value_type;
  std::vector<C> z;
  for (int i = -12; i <= 12; ++i)
    for (int j = -12; j <= 12; ++j) z.emplace_back(R(i) / 3, R(j) / 3);
  std::vector<C> out(z.size());
  const void* in[] = {z.data()};
  ASSERT_NE(find_map(op, dtype_of<C>()), nullptr) << op;
  find_map(op, dtype_of<C>())(in, out.data(), static_cast<std::int64_t>(z.size()));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const auto expected = exact(std::complex<long double>(z[i].real(), z[i].imag()));
    if (!(std::abs(expected) < 1e30L)) continue;  // poles
    const long double error = std::abs(std::complex<long double>(out[i].real(), out[i].imag()) - expected);
    ASSERT_LE(error, bound * std::numeric_limits<R>::epsilon() * std::max(std::abs(expected), 1e-3L))
        << op << z[i] << " = " << out[i];
  }
}

TEST(math_accuracy, complex_functions) {
  using Z = std::complex<long double>;
  const std::pair<const char*, Z (*)(Z)> all[] = {
      {"exp", [](Z z) { return std::exp(z); }},
      {"log", [](Z z) { return std::log(z); }},
      {"sqrt", [](Z z) { return std::sqrt(z); }},
      {"sin", [](Z z) { return std::sin(z); }},
      {"cos", [](Z z) { return std::cos(z); }},
      {"tanh", [](Z z) { return std::tanh(z); }},
      {"sinh", [](Z z) { return std::sinh(z); }},
      {"cosh", [](Z z) { return std::cosh(z); }},
      {"expm1", [](Z z) { return std::exp(z) - Z(1); }},
      {"log1p", [](Z z) { return std::log(z + Z(1)); }},
      {"exp2", [](Z z) { return std::exp(z * std::log(2.0L)); }},
      {"log2", [](Z z) { return std::log(z) / std::log(2.0L); }},
      {"log10", [](Z z) { return std::log(z) / std::log(10.0L); }},
      {"reciprocal", [](Z z) { return Z(1) / z; }},
      {"square", [](Z z) { return z * z; }},
      {"rsqrt", [](Z z) { return Z(1) / std::sqrt(z); }},
      {"atan", [](Z z) { return std::atan(z); }},
      {"asinh", [](Z z) { return std::asinh(z); }},
      {"sigmoid", [](Z z) { return Z(1) / (Z(1) + std::exp(-z)); }}};
  for (const auto& [op, exact] : all) {
    expect_complex<std::complex<float>>(op, exact, 40);
    expect_complex<std::complex<double>>(op, exact, 40);
  }
}

// Values of the array API standard at zeros and infinities.
TEST(complex_maps, expm1_and_tanh_at_zeros_and_infinities) {
  using C = std::complex<double>;
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  const C z[] = {{-0.0, 0.0}, {inf, 0.0}, {1e4, 0.0}, {-inf, inf}, {-inf, nan}, {inf, nan}, {nan, 0.0}};
  const C expected[] = {{0.0, 0.0}, {inf, 0.0}, {inf, 0.0}, {-1.0, 0.0}, {-1.0, 0.0}, {inf, nan}, {nan, 0.0}};
  C out[7];
  const void* in[] = {z};
  const auto same = [](double a, double b) {
    return std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
  };
  find_map("expm1", complex128)(in, out, 7);
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(same(out[i].real(), expected[i].real())) << z[i] << " gives " << out[i];
    EXPECT_TRUE(std::abs(expected[i].imag()) == 0 ? out[i].imag() == 0
                                                  : same(out[i].imag(), expected[i].imag()))
        << z[i] << " gives " << out[i];
  }
  const C far[] = {{inf, 2.0}, {-inf, 2.0}, {inf, -2.0}}, ends[] = {{1.0, 0.0}, {-1.0, 0.0}, {1.0, -0.0}};
  const void* far_in[] = {far};
  find_map("tanh", complex128)(far_in, out, 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(same(out[i].real(), ends[i].real()) && same(out[i].imag(), ends[i].imag())) << out[i];
}

TEST(complex_maps, arithmetic_and_order) {
  using C = std::complex<double>;
  const auto a = testing::random_values<C>(500, 1), b = testing::random_values<C>(500, 2);
  std::vector<C> out(a.size());
  const void* in[] = {a.data(), b.data()};
  const auto run = [&](const char* op) { find_map(op, complex128)(in, out.data(), 500); };
  const auto near = [&](C got, C expected) {
    return std::abs(got - expected) <= 4e-15 * std::max(1.0, std::abs(expected));
  };
  run("multiply");
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(near(out[i], a[i] * b[i]));
  run("divide");
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(near(out[i], a[i] / b[i])) << out[i] << a[i] / b[i];
  run("power");
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(near(out[i], std::pow(a[i], b[i])));
  std::vector<C> two(a.size(), C(2)), squares(a.size());
  const void* by_two[] = {a.data(), two.data()};
  find_map("power", complex128)(by_two, squares.data(), 500);
  two.back() = C(3);
  find_map("power", complex128)(by_two, out.data(), 500);
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    ASSERT_TRUE(near(squares[i], a[i] * a[i])) << "of squares alone";
    ASSERT_EQ(out[i], squares[i]) << "among other exponents";
  }
  run("maximum");
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(out[i], a[i].real() > b[i].real() ? a[i] : b[i]);
  std::vector<std::uint8_t> less(a.size());
  map<"less">.of(complex128)(in, less.data(), 500);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(less[i] != 0, a[i].real() < b[i].real());
  const C small[] = {C(1e-200, 1e-200), C(3e-310, 0)}, scale[] = {C(1e-200, 1e-200), C(1e-310, 0)};
  const void* tiny[] = {small, scale};
  map<"divide">.of(complex128)(tiny, out.data(), 2);
  EXPECT_TRUE(near(out[0], C(1, 0)));
  EXPECT_NEAR(out[1].real(), 3, 1e-10);
}

// Smith's division of one number.
template <class C> C quotient(C a, C b) {
  using R = typename C::value_type;
  const R br = b.real(), bi = b.imag();
  if (std::abs(br) >= std::abs(bi)) {
    if (br == 0 && bi == 0) return C(a.real() / std::abs(br), a.imag() / std::abs(br));
    const R ratio = bi / br, divisor = br + bi * ratio;
    return C((a.real() + a.imag() * ratio) / divisor, (a.imag() - a.real() * ratio) / divisor);
  }
  const R ratio = br / bi, divisor = bi + br * ratio;
  return C((a.real() * ratio + a.imag()) / divisor, (a.imag() * ratio - a.real()) / divisor);
}

// Quotients and reciprocals of all pairs of special parts, for every remainder of the vector length and any
// address.
template <class C> void expect_quotients() {
  using R = typename C::value_type;
  using Limits = std::numeric_limits<R>;
  const std::vector<R> parts = {R(0),
                                R(-0.),
                                R(1),
                                R(-2.5),
                                R(7),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                Limits::max(),
                                Limits::min(),
                                Limits::denorm_min()};
  std::vector<C> numbers, a, b;
  for (const R re : parts)
    for (const R im : parts) numbers.emplace_back(re, im);
  for (const C& x : numbers)
    for (const C& y : numbers) a.push_back(x), b.push_back(y);
  const auto same = [](R x, R y) {
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  };
  std::vector<C> out(a.size() + 1);
  const auto check = [&](std::size_t first, std::size_t n) {
    for (const bool inverts : {false, true}) {
      const void* in[] = {inverts ? b.data() + first : a.data() + first, b.data() + first};
      out[n] = C(77, 77);
      (inverts ? map<"reciprocal"> : map<"divide">)
          .of(dtype_of<C>())(in, out.data(), static_cast<std::int64_t>(n));
      EXPECT_EQ(out[n], C(77, 77));
      for (std::size_t i = 0; i < n; ++i) {
        const C wanted = quotient(inverts ? C(1) : a[first + i], b[first + i]);
        ASSERT_TRUE(same(out[i].real(), wanted.real()) && same(out[i].imag(), wanted.imag()))
            << a[first + i] << " / " << b[first + i] << " = " << out[i] << ", not " << wanted << inverts;
      }
    }
  };
  check(0, a.size());
  for (std::size_t n = 0; n < 40; ++n) check(977 + n, n);
}

TEST(math_accuracy, complex_quotients_of_special_numbers) {
  expect_quotients<std::complex<float>>();
  expect_quotients<std::complex<double>>();
}

}  // namespace
}  // namespace tessera::kernels
