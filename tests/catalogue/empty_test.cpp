// Arrays without elements: with an empty leading dim each row gives the same result on any sharding, or
// refuses.
#include <gtest/gtest.h>

#include <tessera/error.hpp>
#include <tessera/ops.hpp>

#include <optional>
#include <typeinfo>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/placed.hpp"

namespace tessera::test {
namespace {

// The sample with no elements in each operand whose leading dim is as long as the first operand's.
std::optional<Sample> emptied(Sample sample) {
  if (sample.operands.empty() || sample.operands[0].shape.ndim() == 0) return std::nullopt;
  const auto extent = sample.operands[0].shape[0];
  if (extent < 2) return std::nullopt;
  for (auto& operand : sample.operands)
    if (operand.shape.ndim() > 0 && operand.shape[0] == extent) operand.shape[0] = 0;
  return sample;
}

std::vector<Sample> empty_samples() {
  std::vector<Sample> found;
  for (const auto& sample : samples_without("empty:no"))
    if (const auto empty = emptied(sample)) found.push_back(*empty);
  return found;
}

struct Outcome {
  Out results;
  std::string refusal;
};
Outcome outcome_of(const Sample& sample, const Out& x) {
  try {
    Outcome outcome{sample.call(x), ""};
    eval(outcome.results);
    return outcome;
  } catch (const Error& error) {
    return {{}, typeid(error).name()};
  }
}

class Empty : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, Empty, testing::ValuesIn(empty_samples()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Empty, is_the_same_on_any_sharding) {
  const auto x = operands_of(GetParam(), 1);
  const auto expected = outcome_of(GetParam(), x);
  std::mt19937 random(19);
  for (int round = 0; round < 2; ++round) {
    const auto [sharded, text] = placed(random, x);
    const auto got = outcome_of(GetParam(), sharded);
    ASSERT_EQ(got.refusal, expected.refusal) << text;
    for (std::size_t i = 0; i < expected.results.size(); ++i)
      expect_same(got.results[i], expected.results[i], text);
  }
}

}  // namespace
}  // namespace tessera::test
