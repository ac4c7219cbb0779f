// Laws of every op that takes bfloat16 and float16: near what float64 gives, the same on any sharding.
#include <gtest/gtest.h>

#include <tessera/ops.hpp>

#include <cmath>
#include <complex>

#include "support/layouts.hpp"
#include "support/op_samples.hpp"

namespace tessera::test {
namespace {

double unit_of(Dtype half) { return half == bfloat16 ? 0x1p-8 : 0x1p-11; }

// Operands of real numbers as the half; nothing where there are none.
std::vector<Array> halves_of(const OpSample& sample, Dtype half) {
  auto operands = operands_of(sample, 1);
  bool has_reals = false;
  for (auto& x : operands)
    if (is_floating(x.dtype())) x = astype(x, half), has_reals = true;
  return has_reals ? operands : std::vector<Array>{};
}

std::vector<std::complex<double>> numbers(const Array& x) { return to_vector<std::complex<double>>(x); }

// Elements that agree within `units` rounding units of the largest of them.
void expect_near(const Array& got, const Array& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const auto g = numbers(got), e = numbers(expected);
  double largest = 1;
  for (const auto& v : e)
    if (std::isfinite(std::abs(v))) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < g.size(); ++i)
    ASSERT_TRUE(std::abs(g[i] - e[i]) <= tolerance * largest || g[i] == e[i] ||
                (std::isnan(std::abs(g[i])) && std::isnan(std::abs(e[i]))))
        << what << ": element " << i << " is " << g[i] << ", expected " << e[i];
}

struct HalfSample {
  OpSample sample;
  Dtype half;
};
std::vector<HalfSample> half_samples() {
  std::vector<HalfSample> all;
  for (const auto& sample : op_samples())
    if (sample.name != "bitcast")  // whose result is no number
      for (const Dtype half : {bfloat16, float16}) all.push_back({sample, half});
  return all;
}
std::ostream& operator<<(std::ostream& out, const HalfSample& s) { return out << s.sample << " " << s.half; }

// Whatever the operands' dtype: Fourier transforms, and what makes numbers of its own.
bool gives_float32(const std::string& sample) {
  return sample.starts_with("dct_dst") || sample == "labels" || sample == "random_from_parameters";
}

class HalfLaw : public testing::TestWithParam<HalfSample> {};
INSTANTIATE_TEST_SUITE_P(Ops, HalfLaw, testing::ValuesIn(half_samples()), [](const auto& info) {
  return info.param.sample.name + "_" + name(info.param.half);
});

TEST_P(HalfLaw, is_kept) {
  const auto& [sample, half] = GetParam();
  const auto x = halves_of(sample, half);
  if (x.empty()) return;
  std::vector<Array> results;
  try {
    results = sample.call(x);
  } catch (const DtypeError& error) {  // a factorization
    EXPECT_NE(std::string(error.what()).find("has too few digits"), std::string::npos) << error.what();
    return;
  }
  std::vector<Array> wide;
  for (const auto& v : x) wide.push_back(v.dtype() == half ? astype(v, float32) : v);
  const auto expected = sample.call(wide);
  std::mt19937 random(5);
  const Mesh mesh = random_mesh(random);
  std::vector<Array> sharded;
  for (const auto& v : x) sharded.push_back(device_put(v, random_sharding(random, mesh, v.ndim())));
  const auto moved = sample.call(sharded);
  eval(results);
  eval(moved);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string what = "result " + std::to_string(i);
    const bool follows = expected[i].dtype() == float32 && !gives_float32(sample.name);
    EXPECT_EQ(results[i].dtype(), follows ? half : expected[i].dtype()) << what;
    expect_near(moved[i], results[i], 4 * unit_of(half), what + " sharded");
    if (is_inexact(results[i].dtype()))
      expect_near(results[i], expected[i], 16 * unit_of(half), what + " of halves");
  }
}

}  // namespace
}  // namespace tessera::test
