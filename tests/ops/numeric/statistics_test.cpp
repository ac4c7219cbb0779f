#include <tessera/random.hpp>

#include "ops/numeric/operands.hpp"
#include "support/compare.hpp"

namespace tessera::test {
namespace {

TEST(Histogram, in_equal_bins_and_between_edges) {
  EXPECT_EQ(to_vector<int>(histogram(full({4}, NAN), {.bins = 2, .range = {{0, 1}}}).first),
            (std::vector<int>{0, 0}));
}

TEST(Histogram, sends_counts_and_no_values) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = device_put(astype(arange(40000), float64), mesh, P("x"));
  const auto text = program_of(histogram(x, {.bins = 8, .range = {{0, 40000}}}).first);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("all-gather")));
}

TEST(Quantile, by_every_method) {
  EXPECT_THAT(error_of<ArgumentError>([] { quantile(ones({3}), 0.5, 0, "middle"); }),
              testing::HasSubstr("'middle'"));
}

// 10 * 0.3 is 3; with float32's 0.3 it would be above 3, and the next element.
TEST(Quantile, of_a_fraction_is_that_of_its_double) {
  EXPECT_EQ(item<float>(quantile(arange(10.f), 0.3, {}, "inverted_cdf")), 2.f);
  EXPECT_EQ(item<float>(percentile(arange(10.f), 30.0, {}, "inverted_cdf")), 2.f);
  const Array unknown = sqrt(full({}, 0.09, float64));  // sorted, not selected
  EXPECT_EQ(item<float>(quantile(arange(10.f), unknown, {}, "inverted_cdf")), 2.f);
}

TEST(Quantile, of_known_fractions_sends_counts_and_no_values) {
  const Array x = device_put(astype(remainder(arange(40001) * 7919, 40001), float64),
                             NamedSharding(make_mesh({device_count()}, {"x"}), P("x")));
  const Array found = quantile(x, array({0.0, 0.3, 0.5, 1.0}));
  const auto text = program_of(found);
  EXPECT_THAT(text, testing::HasSubstr("elements_of_sorted("));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("all-gather")));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr(" sort(")));
  EXPECT_EQ(to_vector<double>(found), (std::vector<double>{0, 12000, 20000, 40000}));
}

TEST(Quantile, over_axes_and_past_nan) { EXPECT_THROW(quantile(ones({0, 3}), 0.5, 0), ShapeError); }

TEST(WithoutNan, reductions) { EXPECT_EQ(to_vector<int>(nanargmin(full({2}, NAN), 0))[0], -1); }

TEST(WithoutNan, spread_around_an_infinite_mean_is_nan) {
  EXPECT_TRUE(std::isnan(item<float>(nanvar(array({INFINITY, NAN})))));
  EXPECT_TRUE(std::isnan(item<float>(nanstd(array({1.f, INFINITY, 2.f})))));
  EXPECT_EQ(item<float>(nanvar(array({1.f, NAN, 3.f}))), 1);
  EXPECT_EQ(to_vector<float>(grad([](const Array& a) { return nanvar(a); })(array({1.f, NAN, 3.f}))),
            (std::vector<float>{-1, 0, 1}));
}

TEST(Interp, between_points_and_beyond_them) {
  EXPECT_THROW(interp(ones({2}), ones({3}), ones({4})), ShapeError);
}

// The op of known values beside the ops that a traced call records: the same bits, in any layout.
TEST(Interp, of_known_values_is_that_of_traced_ones) {
  const double inf = INFINITY, nan = NAN;
  const Array odd = array({-inf, -9.0, -1.0, -0.0, 0.0, 0.3, 1.0, 1.5, 2.999, 3.0, 3.1, inf, nan});
  std::mt19937 generator(1);
  for (const Dtype dtype : {float32, float64})
    for (const Array& xp : {array({-1.0, 0.0, 1.0, 1.0, 3.0}), array({-9.0, -1.0, 0.5, 0.7, 0.9}),
                            array({0.5, 0.5, 0.5, 0.5, 0.5})})
      for (const auto& ends : {std::optional<double>(), std::optional<double>(-7.1)}) {
        const Array points = astype(xp, dtype), values = astype(array({2.0, -1.0, 0.1, 7.0, nan}), dtype);
        const auto through = [&](const Array& x) { return interp(x, points, values, ends, ends); };
        const Array many = random::uniform(random::key(1), {5, 803}, dtype, -2, 4);
        for (const Array& x :
             {astype(odd, dtype), many, sort(many, -1), sort(reshape(many, {4015})), zeros({0, 3}, dtype)}) {
          const Array traced = std::get<0>(vjp(through, x));
          EXPECT_THAT(program_of(traced), testing::Not(testing::HasSubstr("interp(")));
          EXPECT_THAT(program_of(through(x)), testing::HasSubstr("interp("));
          expect_same(through(x), traced, name(dtype));
          const Mesh mesh = random_mesh(generator);
          expect_same(through(device_put(x, random_sharding(generator, mesh, x.ndim()))), traced,
                      name(dtype));
        }
        const Array at_one_point = interp(0.5, points(slice(2, 3)), values(slice(2, 3)), ends, {});
        expect_same(at_one_point, points(2).item<double>() > 0.5 && ends ? astype(-7.1, dtype) : values(2),
                    name(dtype));
      }
}

// Points that ranks hold in parts stay there: the values' places are summed.
TEST(Interp, gathers_no_points) {
  if (device_count() == 1) return;
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array points = device_put(astype(arange(40000), float64), mesh, P("x"));
  const Array y = interp(array({0.5, 39998.5}), points, 2 * points);
  EXPECT_THAT(program_of(y), testing::Not(testing::HasSubstr("interp(")));
  EXPECT_EQ(to_vector<double>(y), (std::vector<double>{1, 79997}));
}

TEST(Gradients, of_quantiles_and_means_reach_their_elements) {
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
