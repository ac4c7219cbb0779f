// The law of derivatives: vjp and jvp of every op agree with central finite differences, and so do second
// derivatives; on sharded operands they have the same values, and gradients lie where their operands lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <cmath>

#include "support/layouts.hpp"
#include "support/op_samples.hpp"

namespace tessera::test {
namespace {

using Leaves = std::vector<Array>;

std::vector<OpSample> smooth_samples() {
  std::vector<OpSample> samples;
  for (const auto& sample : op_samples())
    if (sample.smooth != Smooth::no) samples.push_back(sample);
  return samples;
}

class Derivative : public testing::TestWithParam<OpSample> {};
INSTANTIATE_TEST_SUITE_P(Ops, Derivative, testing::ValuesIn(smooth_samples()),
                         [](const auto& info) { return info.param.name; });

// The op's smooth results.
Leaves inexact_only(const Leaves& x) {
  Leaves result;
  for (const auto& leaf : x)
    if (is_inexact(leaf.dtype())) result.push_back(leaf);
  return result;
}
std::function<Leaves(const Leaves&)> smooth_part(const OpSample& sample) {
  return [&sample](const Leaves& x) { return inexact_only(sample.call(x)); };
}

// Moves the inexact leaves; the others stay.
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
// Re sum(a b), without conjugation: how cotangents and tangents are paired.
double paired(const Leaves& a, const Leaves& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += item<double>(sum(real(a[i] * b[i])));
  return total;
}
// On the host: the two may lie on different devices.
void expect_close(const Leaves& a, const Leaves& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape()) << what << " " << i;
    const auto x = to_vector<std::complex<double>>(a[i]), y = to_vector<std::complex<double>>(b[i]);
    double scale = 1;
    for (const auto& value : y) scale = std::max(scale, std::abs(value));
    for (std::size_t n = 0; n < x.size(); ++n)
      ASSERT_LE(std::abs(x[n] - y[n]), tolerance * scale)
          << what << " " << i << ", element " << n << " of " << x.size() << ": " << x[n] << " and " << y[n];
  }
}

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
              sample.tolerance * std::max(1.0, std::abs(expected)))
      << "vjp";

  const auto [same, tangent] = jvp(call, std::tuple{x}, std::tuple{v});
  expect_close(inexact_only(tangent), inexact_only(quotient), sample.tolerance, "jvp");
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
  expect_close(second, quotient, sample.tolerance, "second derivative");
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
    const Mesh mesh = random_mesh(random);
    Leaves sharded;
    std::string layouts;
    for (const auto& leaf : x) {
      sharded.push_back(device_put(leaf, random_sharding(random, mesh, leaf.ndim())));
      layouts += text_of(sharded.back().sharding()) + " ";
    }
    SCOPED_TRACE(layouts);
    const auto [gradients] = vjp(call, sharded).second(ct);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      EXPECT_EQ(gradients[i].sharding(), sharded[i].sharding()) << "operand " << i;
    const auto tangent = jvp(call, std::tuple{sharded}, std::tuple{v}).second;
    eval(gradients, tangent);
    expect_close(inexact_only(gradients), inexact_only(expected), 1e-11, "gradient");
    expect_close(inexact_only(tangent), inexact_only(expected_tangent), 1e-11, "tangent");
  }
}

}  // namespace
}  // namespace tessera::test
