// Stacks that are split along the steps: processed block by block, never gathered on a rank.
#include <tessera/debug.hpp>

#include "control/loops.hpp"
#include "support/traffic.hpp"

namespace tessera::test {
namespace {

// Entries are scalars, so the split cannot move to another dim.
constexpr auto running = [](const Array& xs) {
  return scan(
      [](const Array& c, const Array& x) {
        return std::pair{c * 0.5 + sin(x), c - x};
      },
      zeros({}, float64), xs);
};
std::int64_t largest_block(std::int64_t n) { return (n + device_count() - 1) / device_count(); }
Array split(const Array& x) { return device_put(x, line(), P("x")); }

TEST(Walk, gives_what_the_whole_stack_gives) {
  for (const std::int64_t n :
       {1, 2, 7, 9, 10, 13, 17, 24}) {  // with the longer ones some ranks have short and empty blocks
    const Array xs = spread({n});
    const auto [c, ys] = running(xs);
    const auto [walked_c, walked_ys] = jit(running)(split(xs));
    expect_close(walked_c, c, "carry");
    expect_close(walked_ys, ys, "stack");
  }
}

TEST(Walk, leaves_what_is_stacked_split_along_the_steps) {
  for (const std::int64_t n : {5, 13}) {  // unrolled, and as a loop
    const Array xs = split(spread({n}));
    EXPECT_EQ(running(xs).second.sharding(), xs.sharding()) << n;
    EXPECT_EQ(jit(running)(xs).second.sharding(), xs.sharding()) << n;
  }
}

TEST(Walk, holds_one_block_at_a_time) {
  const std::int64_t n = 1000;
  const auto memory = jit(running).lower(split(spread({n}))).compile().memory_analysis();
  EXPECT_LE(memory.temporary_bytes, 8 * largest_block(n) + 256);
  EXPECT_LE(memory.peak_bytes, 3 * 8 * largest_block(n) + 512);
}

TEST(Walk, receives_what_is_predicted) {
  for (const std::int64_t n : {13, 16, 1001}) {
    const Array xs = split(spread({n}));
    const auto compiled = jit(running).lower(xs).compile();
    const auto predicted = compiled.explanation();
    const debug::CommStats stats;
    const auto [c, ys] = compiled(xs);
    eval(c, ys);
    EXPECT_EQ(most_of_any_rank(stats.bytes("broadcast")), predicted.bytes("broadcast")) << n;
    EXPECT_EQ(stats.bytes(), stats.bytes("broadcast"));
    const std::int64_t blocks = (n + largest_block(n) - 1) / largest_block(n);
    EXPECT_EQ(stats.calls("broadcast"), device_count() == 1 ? 0 : blocks);
    EXPECT_EQ(predicted.calls(), device_count() == 1 ? 0 : blocks);
  }
}

TEST(Walk, stands_in_what_explain_says) {
  if (device_count() == 1) GTEST_SKIP() << "one rank has all blocks";
  const auto explanation = explain(running, split(spread({13})));
  std::ostringstream text;
  text << explanation;
  EXPECT_THAT(text.str(), HasSubstr("broadcast"));
  EXPECT_THAT(text.str(), HasSubstr("scan at "));
  EXPECT_EQ(explanation.calls("all-gather"), 0) << text.str();
}

// Two stacks with different blocks, one of them replicated along another axis, entries split over a third.
TEST(Walk, takes_several_stacks_on_a_grid) {
  const int n = device_count(), p = n % 2 == 0 ? 2 : 1;
  const Mesh grid = make_mesh({n / p, p}, {"x", "y"});
  const auto f = [](const Array& a, const Array& b, const Array& whole) {
    return scan(
        [](const Array& c, const std::vector<Array>& x) {
          return std::pair{c + x[0] * x[1], std::vector<Array>{c * x[2], x[1]}};
        },
        zeros({2}, float64), std::vector{a, b, whole});
  };
  const Array a = spread({11, 2}), b = spread({11}), whole = spread({11, 1});
  const auto [c, ys] = f(a, b, whole);
  const auto [walked_c, walked_ys] = jit(f)(
      device_put(a, grid, P("x", "y")), device_put(b, grid, P(axes("y", "x"))), device_put(whole, grid, P()));
  expect_close(walked_c, c, "carry");
  expect_close(walked_ys[0], ys[0], "first stack");
  expect_close(walked_ys[1], ys[1], "second stack");
}

TEST(Walk, is_walked_back_by_the_gradient) {
  const auto loss = [](const Array& xs) {
    const auto [c, ys] = running(xs);
    return c * c + sum(ys * cos(ys));
  };
  for (const std::int64_t n : {13, 17}) expect_gradient(loss, spread({n}), "walked");
  const std::int64_t n = 1000;
  const auto compiled = jit(grad(loss)).lower(split(spread({n}))).compile();
  EXPECT_EQ(compiled.explanation().calls("all-gather"), 0) << compiled.as_text();
  EXPECT_LE(compiled.memory_analysis().peak_bytes, 20 * 8 * largest_block(n)) << compiled.as_text();
}

TEST(Walk, is_mapped_over_a_batch) {
  const Array xs = spread({11, 3});
  const auto one = [](const Array& v) { return running(v).second; };
  const Array expected = vmap(one, {.in_axes = 1, .out_axes = 1})(xs);
  expect_close(jit(vmap(one, {.in_axes = 1, .out_axes = 1}))(split(xs)), expected, "batch");
}

}  // namespace
}  // namespace tessera::test
