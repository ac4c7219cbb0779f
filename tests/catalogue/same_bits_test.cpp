// The law of a ReproducibleScope, for every row: values and gradients have the same
// bits in any layout as on one rank alone, or the call is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <set>

#include "catalogue/samples.hpp"
#include "reproducible/bits.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using Leaves = std::vector<Array>;
constexpr int rounds = 2;

class SameBitsLaw : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Rows, SameBitsLaw, testing::ValuesIn(samples_without("values")),
                         [](const auto& info) { return info.param.name; });

// Tests a third of the rows on each number of ranks, so that three successive numbers of ranks cover all
// rows. (Collectives by axis name combine one term per rank: their bits depend on the number of ranks.)
bool has_its_turn(const Sample& sample) {
  if (sample.has("bits:no")) return false;
  return (std::hash<std::string>()(sample.name) + static_cast<std::size_t>(process_count())) % 3 == 0;
}

struct Placed {
  Leaves x;
  std::string text;
};
Placed placed(const Leaves& x, std::mt19937& random) {
  const Mesh mesh = random_mesh(random);
  Placed result;
  for (const auto& leaf : x) {
    result.x.push_back(device_put(leaf, random_sharding(random, mesh, leaf.ndim())));
    result.text += text_of(result.x.back().sharding()) + " ";
  }
  return result;
}

// Calls f; false if the scope refuses it.
bool is_taken(const std::function<void()>& f, std::string& refusal) {
  try {
    f();
    return true;
  } catch (const ShardingError& error) {
    if (std::string(error.what()).find("same bits") == std::string::npos) throw;
    refusal = error.what();
    return false;
  }
}

// The expected bits are those of uncommitted operands, with which every rank computes on its own.
TEST_P(SameBitsLaw, values) {
  const auto& sample = GetParam();
  if (!has_its_turn(sample)) return;
  std::mt19937 random(29);
  const Leaves x = operands_of(sample, 1);
  std::string refusal;
  Leaves alone;
  const ReproducibleScope scope;
  if (!is_taken([&] { alone = sample.call(x), eval(alone); }, refusal)) return;
  const auto expected = bits_of(alone);
  for (int round = 0; round < rounds; ++round) {
    const Placed on = placed(x, random);
    Leaves results;
    if (!is_taken([&] { results = sample.call(on.x), eval(results); }, refusal)) continue;
    EXPECT_SAME_BITS(bits_of(results), expected, on.text);
  }
}

Leaves inexact_only(const Leaves& x) {
  Leaves result;
  for (const auto& leaf : x)
    if (is_inexact(leaf.dtype())) result.push_back(leaf);
  return result;
}

// The gradient is taken outside the scope in which the function was recorded.
TEST_P(SameBitsLaw, gradients) {
  const auto& sample = GetParam();
  if (sample.smooth == Smooth::no || !has_its_turn(sample)) return;
  const auto call = [&](const Leaves& x) {
    const ReproducibleScope scope;
    return inexact_only(sample.call(x));
  };
  const auto gradients = [&](const Leaves& x) {
    const auto [out, pullback] = vjp(call, x);
    std::mt19937 random(7);
    Leaves cotangents;
    for (const auto& y : out) cotangents.push_back(random_like(y, random));
    Leaves result = std::get<0>(pullback(cotangents));
    eval(result);
    return result;
  };
  std::mt19937 random(31);
  const Leaves x = operands_of(sample, 1);
  std::string refusal, expected;
  if (!is_taken([&] { expected = bits_of(inexact_only(gradients(x))); }, refusal)) return;
  for (int round = 0; round < rounds; ++round) {
    const Placed on = placed(x, random);
    std::string found;
    if (!is_taken([&] { found = bits_of(inexact_only(gradients(on.x))); }, refusal)) continue;
    EXPECT_SAME_BITS(found, expected, on.text);
  }
}

}  // namespace
}  // namespace tessera::test
