// Handles that only some ranks hold: Python's garbage collector frees cycles at different times on each rank.
// Such handles must not change what the ranks compute together.
#include <gtest/gtest.h>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "graph/node.hpp"

namespace tessera {
namespace {

using Made = std::pair<Array, Array>;  // a part of an expression, and the expression

Sharding rows() { return NamedSharding(make_mesh({device_count()}, {"x"}), P("x")); }
Sharding replicated() { return NamedSharding(make_mesh({device_count()}, {"x"}), P()); }
Array numbers() { return device_put(reshape(arange(35, float32), {7, 5}), rows()); }

std::vector<std::function<Made(const Array&)>> expressions() {
  return {
      [](const Array& x) {
        const Array part = x + 1;
        return Made(part, part * 2);
      },
      [](const Array& x) {  // if the part is held, one more message is needed
        const Array part = device_put(x, replicated());
        return Made(part, device_put(part + 1, rows()));
      },
      [](const Array& x) {
        const Array part = matmul(x.T(), x);
        return Made(part, part - 1);
      },
      [](const Array& x) {
        const Array part = sum(x, {0});
        return Made(part, x - part);
      },
      [](const Array& x) {  // an uncommitted part
        const Array part = arange(5, float32) + 1;
        return Made(part, x * part);
      },
  };
}

TEST(HeldValues, of_one_rank_alone_change_nothing) {
  const Array x = numbers();
  eval(x);
  for (const auto& make : expressions()) {
    const auto expected = to_vector<float>(make(x).second);
    for (int round = 0; round < 8; ++round) {  // several rounds, so that some agreements are deferred
      auto [part, whole] = make(x);
      std::optional<Array> kept;
      if (process_index() == round % device_count() && round != 3) kept = part;
      part = Array();
      eval(whole);
      EXPECT_EQ(to_vector<float>(whole), expected);
    }
  }
  EXPECT_EQ(item<float>(sum(x)), 34 * 35 / 2);  // the ranks still agree
}

TEST(HeldValues, of_a_part_of_the_ranks_change_nothing) {
  std::vector<Device> part = devices();
  if (part.size() > 1) part.erase(part.begin() + 1);
  std::reverse(part.begin(), part.end());
  Array x = device_put(arange(11, float32), make_mesh({static_cast<int>(part.size())}, {"x"}, part), P("x"));
  for (int round = 0; round < 6; ++round) {
    Array more = x + 1;
    const Array whole = more * 2 - more;
    std::optional<Array> kept;
    if (process_index() == round % device_count()) kept = more;
    more = Array();
    eval(whole);
    x = whole;
  }
  EXPECT_EQ(to_vector<float>(x).back(), 16);
}

TEST(HeldValues, that_all_ranks_hold_now_and_then_have_their_values) {
  Array x = numbers();
  std::vector<Array> kept;
  for (int round = 0; round < 12; ++round) {
    const Array part = x + 1;
    x = part + 1;
    if (round % 3 == 1) kept.push_back(part);
    eval(x);
  }
  eval(kept);
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ(to_vector<float>(kept[static_cast<std::size_t>(n)])[2], 2 + 6 * n + 3) << n;
}

TEST(HeldValues, of_one_rank_that_fail_are_raised_on_all) {
  const Array x = device_put(-eye(6), rows());
  for (int round = 0; round < 3; ++round) {
    Array part = linalg::cholesky(x);
    const Array whole = part + 1;
    std::optional<Array> kept;
    if (process_index() == 0) kept = part;
    part = Array();
    EXPECT_THROW(eval(whole), LinAlgError);
  }
  EXPECT_EQ(item<float>(sum(x)), -6);
}

}  // namespace
}  // namespace tessera
