// Special functions against SciPy's values, and their derivatives against differences.
#include <tessera/ops/special.hpp>

#include "ops/numeric/goldens.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;
Array a_of(Given o) { return o.u / 2 + 0.4; }
Array t_of(Given o) { return abs(o.x) / 2 + 0.1; }
Array p_of(Given o) { return (o.u + 0.1) / 10; }
Array reversed(Given o) { return reshape(flip(ravel(o.n), 0), {7, 5}); }

TEST(Special, GammaAndBeta) {
  expect_as_numpy("igamma", [](Given o) { return igamma(a_of(o), t_of(o)); });
  expect_as_numpy("igammac", [](Given o) { return igammac(a_of(o), t_of(o)); });
  expect_as_numpy("igamma_large", [](Given o) { return igamma(a_of(o) * 40, o.u * 20 + 15); });
  expect_as_numpy(
      "igammac_far", [](Given o) { return igammac(a_of(o), t_of(o) * 12); }, 1e-14);
  expect_as_numpy("betainc", [](Given o) { return betainc(a_of(o), t_of(o), p_of(o)); });
  expect_as_numpy("betainc_large", [](Given o) { return betainc(a_of(o) * 30, t_of(o) * 30, p_of(o)); });
  expect_as_numpy("gammaln", [](Given o) { return gammaln(a_of(o)); });
  expect_as_numpy("betaln", [](Given o) { return betaln(a_of(o), t_of(o)); });
}

TEST(Special, ZetaAndPolygamma) {
  expect_as_numpy("zeta", [](Given o) { return zeta(a_of(o) + 1.2, t_of(o)); });
  expect_as_numpy("polygamma_0", [](Given o) { return polygamma(0, a_of(o)); });
  expect_as_numpy("polygamma_1", [](Given o) { return polygamma(1, t_of(o)); });
  expect_as_numpy(
      "polygamma_2", [](Given o) { return polygamma(2, t_of(o) - 0.3); }, 1e-11);
  expect_as_numpy("polygamma_3", [](Given o) { return polygamma(3, a_of(o)); });
}

TEST(Special, Bessel) {
  expect_as_numpy("i0", [](Given o) { return i0(o.x); });
  expect_as_numpy("i1", [](Given o) { return i1(o.x); });
  expect_as_numpy("i0e", [](Given o) { return i0e(o.x * 9); });
  expect_as_numpy("i1e", [](Given o) { return i1e(o.x * 9); });
  expect_as_numpy("kaiser", [](Given) { return kaiser(13, 8.6, float64); });
}

TEST(Special, OutsideOfTheirDomains) {
  const auto value = [](const Array& x) { return item<double>(x); };
  const auto d = [](double x) { return full({}, x, float64); };
  EXPECT_TRUE(std::isnan(value(igamma(d(-1), 2.0))));
  EXPECT_EQ(value(igamma(d(2), INFINITY)), 1);
  EXPECT_EQ(value(igammac(d(2), 0.0)), 1);
  EXPECT_TRUE(std::isnan(value(betainc(d(2), 1.0, 1.5))));
  EXPECT_EQ(value(betainc(d(2), 3.0, 1.0)), 1);
  EXPECT_EQ(value(zeta(d(1), 2.0)), INFINITY);
  EXPECT_TRUE(std::isnan(value(zeta(d(0.5), 2.0))));
  EXPECT_TRUE(std::isnan(value(polygamma(d(1.5), 2.0))));
  EXPECT_EQ(value(i0(d(800))), INFINITY);
  EXPECT_EQ(value(grad([](const Array& x) { return i1(x); })(d(0))), 0.5);
}

TEST(Parts, OfNumbers) {
  expect_as_numpy("fmod", [](Given o) { return fmod(o.x, 1.7); });
  expect_as_numpy("fmax", [](Given o) { return fmax(o.z, o.x); });
  expect_as_numpy("fmin", [](Given o) { return fmin(o.z, o.x); });
  expect_as_numpy("signbit", [](Given o) { return signbit(o.x); });
  expect_as_numpy("ldexp", [](Given o) { return ldexp(o.u, o.n); });
  expect_as_numpy("frexp_mantissa", [](Given o) { return frexp(o.x).first; });
  expect_as_numpy("frexp_exponent", [](Given o) { return frexp(o.x).second; });
  expect_as_numpy("gcd", [](Given o) { return gcd(o.n, reversed(o) * 3); });
  expect_as_numpy("lcm", [](Given o) { return lcm(o.n, reversed(o) * 3); });
  expect_as_numpy("population_count", [](Given o) { return population_count(astype(o.n, uint32)); });
  EXPECT_TRUE(item<bool>(signbit(full({}, -0.0))));
  EXPECT_TRUE(std::isnan(item<double>(fmax(full({}, NAN, float64), NAN))));
}

}  // namespace
}  // namespace tessera::test
