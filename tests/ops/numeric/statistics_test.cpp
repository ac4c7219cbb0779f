#include "ops/numeric/goldens.hpp"

namespace tessera::test {
namespace {

using Given = const Operands&;
const char* const methods[] = {"linear",
                               "lower",
                               "higher",
                               "midpoint",
                               "nearest",
                               "inverted_cdf",
                               "averaged_inverted_cdf",
                               "closest_observation",
                               "interpolated_inverted_cdf",
                               "hazen",
                               "weibull",
                               "median_unbiased",
                               "normal_unbiased"};
Array quarters() { return array({0.0, 0.1, 0.25, 0.5, 0.77, 1.0}); }

TEST(Histogram, InEqualBinsAndBetweenEdges) {
  expect_as_numpy("histogram", [](Given o) { return histogram(o.u, 7).first; });
  expect_as_numpy("histogram_edges", [](Given o) { return histogram(o.u, 7).second; });
  expect_as_numpy("histogram_range", [](Given o) {
    return histogram(o.u, {.bins = 5, .range = {{1, 6}}}).first;
  });
  expect_as_numpy("histogram_between", [](Given o) {
    return histogram(o.u, array({0.0, 1.0, 1.5, 4.0, 8.25})).first;
  });
  expect_as_numpy("histogram_weights",
                  [](Given o) { return histogram(o.u, {.bins = 6, .weights = o.x}).first; });
  expect_as_numpy("histogram_density",
                  [](Given o) { return histogram(o.u, {.bins = 6, .density = true}).first; });
  EXPECT_EQ(to_vector<int>(histogram(full({4}, NAN), {.bins = 2, .range = {{0, 1}}}).first),
            (std::vector<int>{0, 0}));
}

TEST(Histogram, InSeveralDims) {
  expect_as_numpy("histogram2d", [](Given o) { return histogram2d(o.x, o.u, {.bins = 4}).counts; });
  expect_as_numpy("histogram2d_x", [](Given o) { return histogram2d(o.x, o.u, {.bins = 4}).x_edges; });
  expect_as_numpy("histogram2d_y", [](Given o) { return histogram2d(o.x, o.u, {.bins = 4}).y_edges; });
  expect_as_numpy("histogramdd",
                  [](Given o) { return histogramdd(o.u(slice(), slice(0, 3)), {.bins = 3}).first; });
  expect_as_numpy("histogramdd_density", [](Given o) {
    return histogramdd(o.u(slice(), slice(0, 2)), {.bins = 3, .density = true}).first;
  });
}

TEST(Histogram, SendsCountsAndNoValues) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(astype(arange(40000), float64), mesh, P("x"));
  const auto text = program_of(histogram(x, {.bins = 8, .range = {{0, 40000}}}).first);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("all-gather")));
}

TEST(Digitize, FindsBinsThatAscendOrDescend) {
  expect_as_numpy("digitize", [](Given o) { return digitize(o.x, array({-5.0, -1.0, 0.0, 4.0})); });
  expect_as_numpy("digitize_right", [](Given o) {
    return digitize(o.x, array({-5.0, -1.0, 0.0, 4.0}), true);
  });
  expect_as_numpy("digitize_down", [](Given o) { return digitize(o.x, array({4.0, 0.0, -1.0, -5.0})); });
}

TEST(Quantile, ByEveryMethod) {
  for (const std::string method : methods) {
    expect_as_numpy("quantile_" + method, [&](Given o) { return quantile(o.u, quarters(), 0, method); });
    expect_as_numpy("quantile_flat_" + method,
                    [&](Given o) { return quantile(o.u, quarters(), {}, method); });
  }
  EXPECT_THAT(error_of<ArgumentError>([] { quantile(ones({3}), 0.5, 0, "middle"); }),
              testing::HasSubstr("'middle'"));
}

TEST(Quantile, OverAxesAndPastNan) {
  expect_as_numpy("quantile_all", [](Given o) { return quantile(o.u, quarters()); });
  expect_as_numpy("quantile_keep", [](Given o) { return quantile(o.u, 0.3, 1, "linear", true); });
  expect_as_numpy("percentile", [](Given o) { return percentile(o.u, array({20, 90}), 0); });
  expect_as_numpy("quantile_both", [](Given o) { return quantile(o.u, 0.4, {0, 1}); });
  expect_as_numpy("quantile_nan", [](Given o) { return quantile(o.z, quarters(), 0); });
  expect_as_numpy("nanquantile", [](Given o) { return nanquantile(o.z, quarters(), 0); });
  expect_as_numpy("nanpercentile", [](Given o) { return nanpercentile(o.z, 30, 1); });
  expect_as_numpy("nanmedian", [](Given o) { return nanmedian(o.z, 0); });
  expect_as_numpy("nanmedian_all", [](Given o) { return nanmedian(o.z); });
  expect_as_numpy("median_all", [](Given o) { return median(o.u); });
  EXPECT_THROW(quantile(ones({0, 3}), 0.5, 0), ShapeError);
}

TEST(WithoutNan, Reductions) {
  expect_as_numpy("nansum", [](Given o) { return nansum(o.z, 0); });
  expect_as_numpy("nanprod", [](Given o) { return nanprod(o.z, 1); });
  expect_as_numpy("nanmean", [](Given o) { return nanmean(o.z, 0); });
  expect_as_numpy("nanvar", [](Given o) { return nanvar(o.z, 1); });
  expect_as_numpy("nanvar_correction", [](Given o) { return nanvar(o.z, 1, false, 1); });
  expect_as_numpy("nanstd", [](Given o) { return nanstd(o.z, 0); });
  expect_as_numpy("nanmax", [](Given o) { return nanmax(o.z, 0); });
  expect_as_numpy("nanmin", [](Given o) { return nanmin(o.z, 1, true); });
  expect_as_numpy("nanargmax", [](Given o) { return nanargmax(o.z, 1); });
  expect_as_numpy("nanargmin", [](Given o) { return nanargmin(o.z(slice(), slice(0, 4)), 0); });
  expect_as_numpy("nanargmax_flat", [](Given o) { return nanargmax(o.z); });
  expect_as_numpy("nancumsum", [](Given o) { return nancumsum(o.z, 0); });
  expect_as_numpy("nancumprod", [](Given o) { return nancumprod(o.z, 1); });
  EXPECT_EQ(to_vector<int>(nanargmin(full({2}, NAN), 0))[0], -1);
}

TEST(Together, CovariancesAndCorrelations) {
  expect_as_numpy("cov", [](Given o) { return cov(o.u); });
  expect_as_numpy("cov_columns", [](Given o) { return cov(o.u, false, 0); });
  expect_as_numpy("cov_line", [](Given o) { return cov(o.u(0)); });
  expect_as_numpy("corrcoef", [](Given o) { return corrcoef(o.u); });
}

TEST(Interp, BetweenPointsAndBeyondThem) {
  const auto xp = [] { return array({-5.0, -1.0, 0.0, 4.0}); };
  const auto fp = [] { return array({2.0, 1.0, 7.0, 3.0}); };
  expect_as_numpy("interp", [&](Given o) { return interp(o.x, xp(), fp()); });
  expect_as_numpy("interp_ends", [&](Given o) { return interp(o.x, xp(), fp(), -9, 11); });
  EXPECT_THROW(interp(ones({2}), ones({3}), ones({4})), ShapeError);
}

TEST(Gradients, OfQuantilesAndMeansReachTheirElements) {
  const Array x = array({3.0, double{NAN}, 1.0, 2.0});
  EXPECT_EQ(to_vector<double>(grad([](const Array& a) {
              return nansum(a * array({6.0, 1.0, 2.0, 4.0}));
            })(x)),
            (std::vector<double>{6, 0, 2, 4}));
  const Array q = grad([](const Array& a) { return quantile(a, 0.25); })(array({3.0, 0.0, 1.0, 2.0}));
  const auto of_q = to_vector<double>(q);
  EXPECT_NEAR(of_q[1], 0.25, 1e-12);
  EXPECT_NEAR(of_q[2], 0.75, 1e-12);
}

}  // namespace
}  // namespace tessera::test
