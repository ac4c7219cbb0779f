#include "ops/numeric/goldens.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;
Array line(Given o) { return ravel(o.u)(slice(0, 23)); }
Array taps() { return array({1.0, -2.0, 0.5, 3.0}); }

TEST(Numeric, DerivativesAndIntegrals) {
  expect_as_numpy("gradient_rows", [](Given o) { return gradient(o.u, 0); });
  expect_as_numpy("gradient_columns", [](Given o) { return gradient(o.u, 1, 0.5); });
  expect_as_numpy("gradient_rows", [](Given o) { return gradient(o.u)[0]; });
  expect_as_numpy("trapezoid", [](Given o) { return trapezoid(o.u, 0.3, 0); });
  expect_as_numpy("trapezoid_places", [](Given o) { return trapezoid(o.u, square(arange(5)), 1); });
  EXPECT_THROW(gradient(ones({1, 4}), 0), ShapeError);
  EXPECT_THROW(trapezoid(ones({4}), ones({3})), ShapeError);
}

TEST(Numeric, Convolutions) {
  for (const std::string mode : {"full", "same", "valid"}) {
    expect_as_numpy("convolve_" + mode, [&](Given o) { return convolve(line(o), taps(), mode); });
    expect_as_numpy("convolve_even_" + mode,
                    [&](Given o) { return convolve(taps(), line(o)(slice(0, 9)), mode); });
    expect_as_numpy("correlate_" + mode, [&](Given o) { return correlate(line(o), taps(), mode); });
    expect_as_numpy("correlate_shorter_" + mode,
                    [&](Given o) { return correlate(taps(), line(o)(slice(0, 9)), mode); });
  }
  EXPECT_THROW(convolve(ones({3}), ones({2}), "around"), ArgumentError);
  EXPECT_THROW(convolve(ones({3}), ones({0})), ShapeError);
}

TEST(Numeric, Products) {
  expect_as_numpy("kron", [](Given o) { return kron(o.u(slice(0, 3)), o.x(slice(0, 2))); });
  expect_as_numpy("kron_lines", [](Given o) { return kron(o.u(0), o.x); });
  expect_as_numpy("cross",
                  [](Given o) { return cross(o.u(slice(), slice(0, 3)), o.x(slice(), slice(2, None))); });
  expect_as_numpy("vecdot", [](Given o) { return vecdot(o.u, o.x, 0); });
  EXPECT_THROW(cross(ones({2}), ones({3})), ShapeError);
}

TEST(Numeric, RangesAndWindows) {
  expect_as_numpy("logspace", [](Given) { return logspace(-1, 2, 13, 10, float64); });
  expect_as_numpy("logspace_base", [](Given) { return logspace(0, 5, 6, 2, float64); });
  expect_as_numpy("geomspace", [](Given) { return geomspace(2, 512, 9, float64); });
  expect_as_numpy("geomspace_down", [](Given) { return geomspace(-100, -0.1, 4, float64); });
  expect_as_numpy("bartlett", [](Given) { return bartlett(11, float64); });
  expect_as_numpy("blackman", [](Given) { return blackman(12, float64); });
  expect_as_numpy("hamming", [](Given) { return hamming(11, float64); });
  expect_as_numpy("hanning", [](Given) { return hanning(12, float64); });
  EXPECT_EQ(to_vector<float>(hanning(1)), std::vector<float>{1});
  EXPECT_THROW(geomspace(-1, 1), ArgumentError);
}

TEST(Numeric, Polynomials) {
  expect_as_numpy("polyval", [](Given o) { return polyval(array({2.0, -1.0, 0.5}), o.u); });
  expect_as_numpy("polyadd", [](Given) { return polyadd(array({1.0, 2.0}), array({3.0, 4.0, 5.0})); });
  expect_as_numpy("polysub", [](Given) { return polysub(array({1.0, 2.0}), array({3.0, 4.0, 5.0})); });
  expect_as_numpy("polymul", [](Given) { return polymul(array({1.0, 2.0}), array({3.0, 4.0, 5.0})); });
  expect_as_numpy("polyder", [](Given) { return polyder(array({3.0, 4.0, 5.0, 6.0}), 2); });
  expect_as_numpy("polyint", [](Given) { return polyint(array({3.0, 4.0, 5.0})); });
  expect_as_numpy(
      "polyfit", [](Given o) { return polyfit(line(o), sin(line(o)), 4); }, 1e-9);
  EXPECT_THROW(polyfit(ones({3}), ones({3}), 3), ArgumentError);
}

TEST(Numeric, Elementwise) {
  expect_as_numpy("angle", [](Given o) { return angle(make_complex(o.x, o.u - 4)); });
  expect_as_numpy("angle_degrees", [](Given o) { return angle(make_complex(o.x, o.u - 4), true); });
  expect_as_numpy("sinc", [](Given o) { return sinc(o.x / 3); });
  expect_as_numpy("heaviside", [](Given o) { return heaviside(o.x, 0.25); });
  expect_as_numpy("nan_to_num", [](Given o) {
    return nan_to_num(where(o.n > 5, INFINITY, where(o.n < -5, -INFINITY, o.z)), 1, 9);
  });
  expect_as_numpy("rad2deg", [](Given o) { return rad2deg(o.u); });
  expect_as_numpy("deg2rad", [](Given o) { return deg2rad(o.u); });
}

TEST(Numeric, ASplitLineIsNotGathered) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(astype(arange(4000), float64), mesh, P("x"));
  for (const Array& y : {gradient(x, 0), trapezoid(x), convolve(x, taps(), "same")})
    EXPECT_THAT(program_of(y), testing::Not(testing::HasSubstr("all-gather")));
}

}  // namespace
}  // namespace tessera::test
