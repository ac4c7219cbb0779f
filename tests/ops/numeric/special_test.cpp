// Special functions outside of their domains. Values inside are tested in tests/catalogue.
#include <tessera/ops/special.hpp>

#include "ops/numeric/operands.hpp"

namespace tessera::test {
namespace {

using A = const Array&;

double value(const Array& x) { return item<double>(x); }
Array d(double x) { return full({}, x, float64); }

TEST(Special, outside_of_their_domains) {
  EXPECT_TRUE(std::isnan(value(igamma(d(-1), 2.0))));
  EXPECT_EQ(value(igamma(d(2), INFINITY)), 1);
  EXPECT_EQ(value(igammac(d(2), 0.0)), 1);
  EXPECT_TRUE(std::isnan(value(betainc(d(2), 1.0, 1.5))));
  EXPECT_EQ(value(betainc(d(2), 3.0, 1.0)), 1);
  EXPECT_EQ(value(zeta(d(1), 2.0)), INFINITY);
  EXPECT_TRUE(std::isnan(value(zeta(d(0.5), 2.0))));
  const double of_large = value(zeta(d(170), 20.0));  // its expansion at 20 diverges
  EXPECT_NEAR(of_large / 6.683582402684207e-222, 1, 1e-13);
  EXPECT_EQ(value(zeta(d(1e300), 2.0)), 0);
  EXPECT_EQ(value(zeta(d(INFINITY), INFINITY)), 0);  // summed for ever, as 10^15 terms below zero did nearly
  EXPECT_TRUE(std::isinf(value(zeta(d(1e15), -0.5))));
  EXPECT_NEAR(value(zeta(d(2), -20000.25)) / 19.7391588040536573, 1, 1e-14);
  EXPECT_NEAR(value(zeta(d(3), -20000.25)) / -62.0125533593497340, 1, 1e-14);
  EXPECT_NEAR(value(zeta(d(3), -20000.5)) / 1.24987500859328127e-9, 1, 1e-12);
  EXPECT_NEAR(value(zeta(d(2), -1e15 - 0.5)) / (M_PI * M_PI), 1, 1e-14);
  EXPECT_TRUE(std::isnan(value(polygamma(d(1.5), 2.0))));
  EXPECT_EQ(value(i0(d(800))), INFINITY);
  EXPECT_EQ(value(grad([](const Array& x) { return i1(x); })(d(0))), 0.5);
}
// Values by mpmath with 60 digits: 20,000 terms of the series, or of the continued fraction, do not reach them.
TEST(Special, incomplete_gamma_of_large_a) {
  EXPECT_NEAR(value(igamma(d(1e8), 1e8)), 0.50001329807601411987, 1e-15);
  EXPECT_NEAR(value(igammac(d(1e8), 1.0001e8)), 0.15865525352820118643, 1e-15);
  EXPECT_NEAR(value(igamma(d(1e8), 9.9945e7)) / 1.8884803860431212051e-8, 1, 1e-13);
  EXPECT_NEAR(value(igammac(d(20000.5), 20500.)) / 2.2802542822277472013e-4, 1, 1e-14);
  EXPECT_DOUBLE_EQ(value(igamma(d(1e30), 1e30)), 0.5);
  EXPECT_NEAR(item<float>(igamma(full({}, 1e8, float32), 1e8f)), 0.50001329f, 1e-7f);
  const double by_a = value(grad([](const Array& a) { return igamma(a, 1e8); })(d(1e8)));
  EXPECT_NEAR(by_a / -3.98942280733884579e-5, 1, 1e-10);
}

TEST(Parts, of_numbers) { EXPECT_TRUE(item<bool>(signbit(full({}, -0.0)))); }

// A NaN gives way to a number, also with a cotangent; ties share it, and of two NaN the second takes it.
TEST(Parts, fmax_and_fmin_prefer_numbers) {
  const Array a = array<double>({NAN, 1, NAN, 2, 5}), b = array<double>({3, NAN, NAN, 2, 4});
  const auto expect = [&](const auto& of, const std::vector<double>& value, const std::vector<double>& by_a) {
    const auto got = to_vector<double>(of(a, b));
    const auto g = to_vector<double>(grad([&](const Array& x) { return sum(nan_to_num(of(x, b))); })(a));
    const auto h = to_vector<double>(grad([&](const Array& x) { return sum(nan_to_num(of(a, x))); })(b));
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(std::isnan(value[i]) ? std::isnan(got[i]) : got[i] == value[i]) << i << ": " << got[i];
      if (std::isnan(value[i])) continue;
      EXPECT_EQ(g[i], by_a[i]) << i;
      EXPECT_EQ(h[i], 1 - by_a[i]) << i;
    }
  };
  expect([](A x, A y) { return fmax(x, y); }, {3, 1, NAN, 2, 5}, {0, 1, 0, 0.5, 1});
  expect([](A x, A y) { return fmin(x, y); }, {3, 1, NAN, 2, 4}, {0, 1, 0, 0.5, 0});
  const auto by_second = grad([&](const Array& x) { return sum(fmax(a, x)); })(b);
  EXPECT_EQ(to_vector<double>(by_second), (std::vector<double>{1, 0, 1, 0.5, 0}));
  using C = std::complex<float>;
  const Array z = array<C>({C(NAN, 1), C(1, 2), C(1, 2)}), w = array<C>({C(3, 4), C(0, NAN), C(1, 3)});
  EXPECT_EQ(to_vector<C>(fmax(z, w)), (std::vector<C>{C(3, 4), C(1, 2), C(1, 3)}));
  EXPECT_EQ(to_vector<C>(fmin(z, w)), (std::vector<C>{C(3, 4), C(1, 2), C(1, 2)}));
}

// jnp.clip is minimum(maximum(x, lo), hi): at a tie each operand has half. A cotangent without end stays out
// where nothing passes.
TEST(Parts, clip_shares_a_tie_with_its_bounds) {
  const Array x = array<double>({-2, -1, 0, 1, 2, 1, NAN}), lo = array<double>({-1, -1, -1, -1, -1, 1, -1}),
              hi = array<double>({1, 1, 1, 1, 1, 1, 1});
  const auto [by_x, by_lo, by_hi] = grad<0, 1, 2>(
      [](const Array& x, const Array& lo, const Array& hi) { return sum(clip(x, lo, hi)); })(x, lo, hi);
  EXPECT_EQ(to_vector<double>(by_x), (std::vector<double>{0, 0.5, 1, 0.5, 0, 0.25, 0}));
  EXPECT_EQ(to_vector<double>(by_lo), (std::vector<double>{1, 0.5, 0, 0, 0, 0.25, 0}));
  EXPECT_EQ(to_vector<double>(by_hi), (std::vector<double>{0, 0, 0, 0.5, 1, 0.5, 0}));
  const Array steep = grad([](const Array& x) { return sum(1 / clip(x, 0.0, 1.0) / 0.0); })(x);
  EXPECT_EQ(to_vector<double>(steep)[0], 0);
  EXPECT_EQ(to_vector<double>(grad([](const Array& x) { return sum(maximum(x, 0.0)); })(x)),
            (std::vector<double>{0, 0, 0.5, 1, 1, 1, 0}));
  const Array at_zero = grad([](const Array& x) { return sum(hypot(x, 0 * x)); })(array<double>({0, 3, -3}));
  EXPECT_EQ(to_vector<double>(at_zero), (std::vector<double>{0, 1, -1}));
}

TEST(Parts, slopes_at_infinity_and_at_negative_zero) {
  const auto slopes = [](const auto& f, const std::vector<double>& a, const std::vector<double>& b) {
    const auto [by_a, by_b] = grad<0, 1>([&](const Array& x, const Array& y) { return sum(f(x, y)); })(
        array<double>(a), array<double>(b));
    return std::pair(to_vector<double>(by_a), to_vector<double>(by_b));
  };
  using Slopes = std::pair<std::vector<double>, std::vector<double>>;
  EXPECT_EQ(slopes([](A x, A y) { return logaddexp(x, y); }, {INFINITY, 0, -INFINITY, 1e300},
                   {1, INFINITY, 0, 1e300}),
            (Slopes{{1, 0, 0, 0.5}, {0, 1, 1, 0.5}}));
  EXPECT_EQ(slopes([](A x, A y) { return copysign(x, y); }, {-0.0, 0.0, -2}, {3, -3, 3}).first,
            (std::vector<double>{1, -1, -1}));
  EXPECT_EQ(slopes([](A x, A y) { return power(x, y); }, {0, INFINITY, -2}, {0, 0, 3}).first,
            (std::vector<double>{0, 0, 12}));
}

// JAX's slope since 0.10: that of the side of a number that is not negative. The complex one is 0 at 0.
TEST(Parts, abs_has_the_slope_1_at_zero) {
  const auto slopes = [](const Array& x) { return grad([](const Array& v) { return sum(abs(v)); })(x); };
  const Array x = array<double>({-2, 0, -0.0, 3, NAN});
  EXPECT_EQ(
      to_vector<double>(slopes(device_put(x, NamedSharding(make_mesh({device_count()}, {"x"}), P("x"))))),
      (std::vector<double>{-1, 1, 1, 1, -1}));
  using C = std::complex<double>;
  EXPECT_EQ(to_vector<C>(slopes(array({C(0, 0), C(3, 4)}))), (std::vector<C>{C(0, 0), C(0.6, -0.8)}));
}

// NumPy's rule: the dtype is kept, the sign is a's, the result is exact; 0 if b is 0.
template <class T>
void expect_fmod(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& rest) {
  const Array result = fmod(array(a), array(b));
  EXPECT_EQ(result.dtype(), dtype_of<T>());
  EXPECT_EQ(to_vector<T>(result), rest);
  EXPECT_EQ(to_vector<T>(jit([](const Array& x, const Array& y) {
              return fmod(x, y) + fmod(x, y) - fmod(x, y);
            })(array(a), array(b))),
            rest);
}
TEST(Parts, fmod_of_integers_is_exact) {
  expect_fmod<std::int8_t>({-128, -128, 127, -7, 7, 7, 5}, {-1, 100, -128, 3, -3, 3, 0},
                           {0, -28, 127, -1, 1, 1, 0});
  expect_fmod<std::int32_t>({16'777'217, -16'777'219, 2'147'483'647, -2'147'483'648},
                            {16'777'216, 16'777'216, -10, -1}, {1, -3, 7, 0});
  expect_fmod<std::int64_t>(
      {9'007'199'254'740'993, -9'007'199'254'740'995, std::numeric_limits<std::int64_t>::min(), 1},
      {9'007'199'254'740'992, 2, -1, 0}, {1, -1, 0, 0});
  expect_fmod<std::uint8_t>({255, 254, 3, 9}, {2, 255, 5, 0}, {1, 254, 3, 0});
  expect_fmod<std::uint64_t>({18'446'744'073'709'551'615u, 18'446'744'073'709'551'615u},
                             {18'446'744'073'709'551'614u, 10}, {1, 5});
  EXPECT_EQ(fmod(array({7, 8, 9}), 2.5f).dtype(), float32);
  EXPECT_EQ(to_vector<float>(fmod(array({7, 8, 9}), 2.5f)), (std::vector{2.0f, 0.5f, 1.5f}));
}

}  // namespace
}  // namespace tessera::test
