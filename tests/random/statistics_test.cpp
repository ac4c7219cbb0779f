// Moments and Kolmogorov-Smirnov distances for 10^7 samples. The keys are fixed, so the outcome is
// deterministic.
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/random.hpp>
#include <tessera/runtime.hpp>
#include <tessera/tree.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tessera::test {
namespace {

constexpr std::int64_t samples = 10'000'000;

// Drawn in blocks over all ranks; each rank checks its own.
Array drawn(const std::function<Array(const random::Key&, Shape)>& draw) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  return device_put(draw(random::key(20), {samples}), mesh, P("x"));
}

struct Moments {
  double mean, variance;
};
void expect_moments(const Array& x, Moments expected, double fourth_moment) {
  const Array wide = astype(x, float64);
  const double mean = item<double>(tessera::mean(wide)), variance = item<double>(var(wide));
  const double n = static_cast<double>(samples);
  // The tolerance is five standard errors.
  EXPECT_NEAR(mean, expected.mean, 5 * std::sqrt(expected.variance / n));
  EXPECT_NEAR(variance, expected.variance,
              5 * std::sqrt((fourth_moment - expected.variance * expected.variance) / n));
}

// The distance of the local samples' distribution function from the exact one, at its 100,000-quantiles; for
// n samples, it exceeds 1.95 / sqrt(n) for one key in a thousand.
void expect_distribution(const Array& x, const std::function<double(double)>& cdf) {
  eval(x);
  const auto block = local<float>(x);
  constexpr std::size_t bins = 100'000;
  std::vector<std::int64_t> counts(bins);
  for (const float v : block) ++counts[std::min(bins - 1, static_cast<std::size_t>(cdf(v) * bins))];
  const double n = static_cast<double>(block.size());
  double distance = 0, below = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    below += static_cast<double>(counts[i]);
    distance = std::max(distance, std::abs(below / n - static_cast<double>(i + 1) / bins));
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);
}

TEST(random_statistics, uniform) {
  const Array x = drawn([](const auto& k, Shape s) { return random::uniform(k, s); });
  expect_moments(x, {0.5, 1.0 / 12}, 1.0 / 80);
  expect_distribution(x, [](double v) { return v; });
}

TEST(random_statistics, normal) {
  const Array x = drawn([](const auto& k, Shape s) { return random::normal(k, s); });
  expect_moments(x, {0, 1}, 3);
  expect_distribution(x, [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); });
}

TEST(random_statistics, exponential) {
  const Array x = drawn([](const auto& k, Shape s) { return random::exponential(k, s); });
  expect_moments(x, {1, 1}, 9);
  expect_distribution(x, [](double v) { return -std::expm1(-v); });
}

TEST(random_statistics, integers_fall_alike_on_all_values) {
  const Array x = drawn([](const auto& k, Shape s) { return random::randint(k, s, 0, 12); });
  for (int value = 0; value < 12; ++value) {
    const double count = item<double>(count_nonzero(x == value)),
                 expected = static_cast<double>(samples) / 12;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected)) << value;
  }
}

TEST(random_statistics, bernoulli) {
  const Array x = drawn([](const auto& k, Shape s) { return random::bernoulli(k, 0.3, s); });
  EXPECT_NEAR(item<double>(count_nonzero(x)) / samples, 0.3, 5 * std::sqrt(0.21 / samples));
}

// Compares moments of gamma, poisson and binomial with formulas, on a tenth of the draws.
TEST(random_statistics, gamma_poisson_binomial) {
  const auto mesh = make_mesh({device_count()}, {"x"});
  const Shape shape{samples / 10};
  const auto near = [&](const Array& x, double mean, double variance) {
    const Array wide = device_put(astype(x, float64), mesh, P("x"));
    EXPECT_NEAR(item<double>(tessera::mean(wide)), mean, 5 * std::sqrt(variance / (samples / 10)));
    EXPECT_NEAR(item<double>(var(wide)), variance, 0.02 * variance);
  };
  near(random::gamma(random::key(1), 0.4, shape), 0.4, 0.4);
  near(random::gamma(random::key(2), 6.0, shape), 6, 6);
  near(random::poisson(random::key(3), 2.5, shape), 2.5, 2.5);
  near(random::poisson(random::key(4), 40.0, shape), 40, 40);
  near(random::binomial(random::key(5), 10, 0.3, shape), 3, 2.1);
  near(random::binomial(random::key(6), 1000, 0.6, shape), 600, 240);
}

}  // namespace
}  // namespace tessera::test
