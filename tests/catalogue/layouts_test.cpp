// Laws of every row: its values do not depend on shardings, jit gives what eager calls give, and a program
// receives no more bytes than explain predicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/debug.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include "catalogue/samples.hpp"
#include "support/compare.hpp"
#include "support/placed.hpp"
#include "support/traffic.hpp"

namespace tessera::test {
namespace {

class Catalogue : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, Catalogue, testing::ValuesIn(samples()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Catalogue, has_the_same_values_on_any_sharding) {
  const auto& sample = GetParam();
  std::mt19937 random(11);
  const auto x = operands_of(sample, 1);
  const auto expected = sample.call(x);
  for (int round = 0; round < 4; ++round) {
    const auto [sharded, text] = placed(random, x);
    auto results = sample.call(sharded);
    if (x.empty()) results = placed(random, results).arrays;  // created where it is wanted
    eval(expected, results);
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      expect_same(results[i], expected[i],
                  text + "-> result " + std::to_string(i) + " " + text_of(results[i].sharding()));
  }
}

TEST_P(Catalogue, is_jitted_to_the_same_values_and_receives_no_more_than_explain_says) {
  const auto& sample = GetParam();
  if (sample.has("jit:no")) return;
  std::mt19937 random(17);
  const auto call = [&sample](std::vector<Array> x) { return sample.call(x); };
  for (int round = 0; round < 2; ++round) {
    const auto [x, text] = placed(random, operands_of(sample, 2));
    const auto expected = sample.call(x);
    const auto compiled = jit(call);
    const auto once = compiled(x);
    eval(expected, once);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_same(once[i], expected[i], text);
    if (sample.has("bytes:no")) continue;
    const auto told = explain(call, x).bytes();
    const debug::CommStats stats;
    eval(compiled(x));
    // explain adds up the busiest rank of each step, and that may be another one in the next step.
    const auto received = most_of_any_rank(stats.bytes());
    EXPECT_LE(received, told) << text;
    EXPECT_EQ(received > 0, told > 0) << text;
  }
}

}  // namespace
}  // namespace tessera::test
