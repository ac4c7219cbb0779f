// Properties of every op that supports bfloat16 and float16: close to the float64 result, the same on any
// sharding.
#include <gtest/gtest.h>

#include <tessera/ops.hpp>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/placed.hpp"

namespace tessera::test {
namespace {

double unit_of(Dtype half) { return half == bfloat16 ? 0x1p-8 : 0x1p-11; }

// The sample's operands with real numbers cast to the 16-bit float; empty if there are none.
std::vector<Array> halves_of(const Sample& sample, Dtype half) {
  auto operands = operands_of(sample, 1);
  bool has_reals = false;
  for (auto& x : operands)
    if (is_floating(x.dtype())) x = astype(x, half), has_reals = true;
  return has_reals ? operands : std::vector<Array>{};
}

struct HalfSample {
  Sample sample;
  Dtype half;
};
std::vector<HalfSample> half_samples() {
  std::vector<HalfSample> all;
  for (const auto& sample : samples_without("half:no"))
    for (const Dtype half : {bfloat16, float16}) all.push_back({sample, half});
  return all;
}
std::ostream& operator<<(std::ostream& out, const HalfSample& s) { return out << s.sample << " " << s.half; }

class HalfLaw : public testing::TestWithParam<HalfSample> {};
INSTANTIATE_TEST_SUITE_P(Rows, HalfLaw, testing::ValuesIn(half_samples()), [](const auto& info) {
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
  const auto moved = sample.call(placed(random, x).arrays);
  eval(results);
  eval(moved);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string what = "result " + std::to_string(i);
    const bool follows = expected[i].dtype() == float32 && !sample.has("float32");
    EXPECT_EQ(results[i].dtype(), follows ? half : expected[i].dtype()) << what;
    expect_close(moved[i], results[i], 4 * unit_of(half), what + " sharded", Scale::largest);
    if (is_inexact(results[i].dtype()))
      expect_close(results[i], expected[i], 16 * unit_of(half), what + " of halves", Scale::largest);
  }
}

}  // namespace
}  // namespace tessera::test
