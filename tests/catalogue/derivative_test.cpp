// The property of derivatives: vjp and jvp of every op agree with central finite differences, and so do
// second derivatives; on sharded operands the values are the same, and gradients have their operands'
// layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/placed.hpp"

namespace tessera::test {
namespace {

using Leaves = std::vector<Array>;

std::vector<Sample> smooth_samples() {
  std::vector<Sample> found;
  for (const auto& sample : samples())
    if (sample.smooth != Smooth::no) found.push_back(sample);
  return found;
}

class Derivative : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, Derivative, testing::ValuesIn(smooth_samples()),
                         [](const auto& info) { return info.param.name; });

// The op's results of inexact dtypes.
Leaves inexact_only(const Leaves& x) {
  Leaves result;
  for (const auto& leaf : x)
    if (is_inexact(leaf.dtype())) result.push_back(leaf);
  return result;
}
std::function<Leaves(const Leaves&)> smooth_part(const Sample& sample) {
  return [&sample](const Leaves& x) { return inexact_only(sample.call(x)); };
}

// Shifts the inexact leaves along the direction; the others do not change.
Leaves moved(const Leaves& x, const Leaves& direction, double h) {
  Leaves result;
  for (std::size_t i = 0; i < x.size(); ++i)
    result.push_back(is_inexact(x[i].dtype()) ? x[i] + h * direction[i] : x[i]);
  return result;
}
Leaves random_directions(const Leaves& x, std::mt19937& random) {
  Leaves result;
  for (const auto& leaf : x) result.push_back(random_like(leaf, random));
  return result;
}
Leaves difference_quotient(const std::function<Leaves(const Leaves&)>& f, const Leaves& x, const Leaves& v) {
  const double h = 1e-5;
  const Leaves forward = f(moved(x, v, h)), back = f(moved(x, v, -h));
  Leaves result;
  for (std::size_t i = 0; i < forward.size(); ++i) result.push_back((forward[i] - back[i]) / (2 * h));
  return result;
}
// Re sum(a b), without conjugation: the pairing of cotangents and tangents.
double paired(const Leaves& a, const Leaves& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += item<double>(sum(real(a[i] * b[i])));
  return total;
}
double tolerance_of(const Sample& sample) { return sample.has("coarse") ? 1e-4 : 1e-6; }

TEST_P(Derivative, agrees_with_finite_differences) {
  const auto& sample = GetParam();
  const auto call = smooth_part(sample);
  std::mt19937 random(3);
  const Leaves x = operands_of(sample, 1), v = random_directions(x, random);
  const auto [out, pullback] = vjp(call, x);
  const Leaves ct = random_directions(out, random);
  const auto [gradients] = pullback(ct);
  eval(out, gradients);
  const Leaves quotient = difference_quotient(call, x, v);
  eval(quotient);

  const double expected = paired(ct, quotient);
  EXPECT_NEAR(paired(inexact_only(gradients), inexact_only(v)), expected,
              tolerance_of(sample) * std::max(1.0, std::abs(expected)))
      << "vjp";

  const auto [same, tangent] = jvp(call, std::tuple{x}, std::tuple{v});
  expect_close(inexact_only(tangent), inexact_only(quotient), tolerance_of(sample), "jvp", Scale::largest);
  expect_close(same, out, 1e-14, "value");
}

TEST_P(Derivative, of_the_derivative_agrees_with_finite_differences) {
  const auto& sample = GetParam();
  const auto call = smooth_part(sample);
  if (sample.smooth != Smooth::twice) GTEST_SKIP() << "no second derivative";
  std::mt19937 random(5);
  const Leaves x = operands_of(sample, 2), v = random_directions(x, random),
               ct = random_directions(call(x), random);
  const auto gradient = [&](const Leaves& x) { return inexact_only(std::get<0>(vjp(call, x).second(ct))); };
  const Leaves quotient = difference_quotient(gradient, x, v);
  const auto [first, second] = jvp(gradient, std::tuple{x}, std::tuple{v});
  eval(quotient, first, second);
  expect_close(second, quotient, tolerance_of(sample), "second derivative", Scale::largest);
}

TEST_P(Derivative, is_the_same_on_any_sharding) {
  const auto& sample = GetParam();
  const auto call = smooth_part(sample);
  std::mt19937 random(7);
  const Leaves x = operands_of(sample, 1), ct = random_directions(call(x), random),
               v = random_directions(x, random);
  const auto [expected] = vjp(call, x).second(ct);
  const auto expected_tangent = jvp(call, std::tuple{x}, std::tuple{v}).second;
  for (int round = 0; round < 3; ++round) {
    const auto [sharded, layouts] = placed(random, x);
    SCOPED_TRACE(layouts);
    const auto [gradients] = vjp(call, sharded).second(ct);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_EQ(gradients[i].sharding(), sharded[i].sharding()) << "operand " << i;
    const auto tangent = jvp(call, std::tuple{sharded}, std::tuple{v}).second;
    eval(gradients, tangent);
    expect_close(inexact_only(gradients), inexact_only(expected), 1e-11, "gradient", Scale::largest);
    expect_close(inexact_only(tangent), inexact_only(expected_tangent), 1e-11, "tangent", Scale::largest);
  }
}

}  // namespace
}  // namespace tessera::test
