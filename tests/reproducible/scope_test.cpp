// The extent of the scope: jit, gradients, settings, refusals, texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "base/settings.hpp"
#include "graph/op.hpp"
#include "reproducible/bits.hpp"
#include "support/compare.hpp"

namespace tessera::test {
namespace {

bool has_tree(const Array& x) { return program_of(x).find("tree_") != std::string::npos; }
Array operand() { return random_array({1000}, float32, 1); }

TEST(ReproducibleScope, holds_for_what_is_recorded_inside) {
  EXPECT_FALSE(is_reproducible());
  EXPECT_FALSE(has_tree(sum(operand())));
  {
    const ReproducibleScope scope;
    EXPECT_TRUE(is_reproducible());
    EXPECT_TRUE(has_tree(sum(operand())));
    {
      const ReproducibleScope without(false);
      EXPECT_FALSE(has_tree(sum(operand())));
    }
    EXPECT_TRUE(has_tree(mean(operand())));
    EXPECT_FALSE(has_tree(sum(astype(operand(), int32)))) << "integers need no order";
  }
  EXPECT_FALSE(is_reproducible());
}

TEST(ReproducibleScope, is_a_setting) {
  const SettingScope setting("TESSERA_REPRODUCIBLE", "1");
  EXPECT_TRUE(is_reproducible());
  EXPECT_TRUE(has_tree(sum(operand())));
  const ReproducibleScope without(false);
  EXPECT_FALSE(is_reproducible());
}

TEST(ReproducibleScope, is_kept_by_gradients_taken_outside) {
  const auto f = [](const Array& x) {
    const ReproducibleScope scope;
    return sum(broadcast_to(x, Shape{50, 1000}) * random_array({50, 1000}, float32, 2));
  };
  const auto text = program_of(grad(f)(operand()));
  EXPECT_NE(text.find("tree_sum"), std::string::npos) << text;
}

TEST(ReproducibleScope, is_part_of_what_jit_knows_a_call_by) {
  int traces = 0;
  const auto f = jit([&](const Array& x) {
    ++traces;
    return sum(x * 2);
  });
  const auto text_of_call = [&] { return f.lower(operand()).compile().as_text(); };
  f(operand()), f(operand());
  EXPECT_EQ(traces, 1);
  {
    const ReproducibleScope scope;
    f(operand()), f(operand());
    EXPECT_EQ(traces, 2);
    EXPECT_NE(text_of_call().find("tree_sum"), std::string::npos);
  }
  EXPECT_EQ(text_of_call().find("tree_sum"), std::string::npos);
}

TEST(ReproducibleScope, is_an_option_of_jit) {
  const auto f = jit([](const Array& x) { return sum(x * 2); }, {.reproducible = true});
  EXPECT_NE(f.lower(operand()).compile().as_text().find("tree_sum"), std::string::npos);
  EXPECT_FALSE(is_reproducible());
  const auto outer = jit([&](const Array& x) { return f(x) + 1; });  // an inner jit is a plain call
  EXPECT_NE(outer.lower(operand()).compile().as_text().find("tree_sum"), std::string::npos);
}

TEST(ReproducibleScope, keeps_plans_apart) {
  const Array x = operand();
  const auto outside = bits_of(sum(x * 3));
  const ReproducibleScope scope;
  const auto inside = bits_of(sum(x * 3));
  const ReproducibleScope without(false);
  EXPECT_EQ(bits_of(sum(x * 3)), outside);
  EXPECT_EQ(inside.size(), outside.size());
}

// A loop records its body again, with its captures as operands. The scope gives max another form.
TEST(ReproducibleScope, holds_in_loops_and_branches_of_an_extremum) {
  const Array shift = random_array({1000}, float32, 2);
  const auto halve = [&](const Array& x) { return (x / max(x - shift) + sum(x) * 0.001) * 0.5; };
  const auto halve_outside = [&](const Array& x) {
    const ReproducibleScope without(false);
    return halve(x);
  };
  const auto steps = [](const auto& step, const Array& given) {
    const auto f = jit([&](const Array& x) {
      return fori_loop(
          0, 9, [&](const Array&, const Array& y) { return cond(max(y) > 0.5, step, step, y); }, x);
    });
    return f(given);
  };
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const ReproducibleScope scope;
  const Array expected = steps(halve, operand());
  const Array split = steps(halve, device_put(operand(), NamedSharding(mesh, P("x"))));
  EXPECT_SAME_BITS(bits_of(split), bits_of(expected), "split");
  const auto gradient = grad([&](const Array& x) { return sum(steps(halve, x)); });
  EXPECT_SAME_BITS(bits_of(gradient(device_put(operand(), NamedSharding(mesh, P("x"))))),
                   bits_of(gradient(operand())), "gradient");
  expect_close(steps(halve_outside, operand()), expected, "without the scope");
}

TEST(ReproducibleScope, refuses_a_matrix_that_ranks_hold_together) {
  if (device_count() == 1) GTEST_SKIP();
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = random_array({40, 40}, float64, 1) + 40 * eye(40);
  const ReproducibleScope scope;
  const Array split = device_put(a, NamedSharding(mesh, P("x")));
  try {
    eval(linalg::eigvalsh(split));
    FAIL() << "not refused";
  } catch (const ShardingError& error) {
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("Replicate the operand first"));
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("float64[40,40] P('x')"));
  }
  const Array whole = linalg::eigvalsh(device_put(a, NamedSharding(mesh, P())));
  EXPECT_SAME_BITS(bits_of(whole), bits_of(linalg::eigvalsh(a)), "replicated");
}

TEST(ReproducibleScope, sums_over_ranks_are_the_same_from_run_to_run) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array x = random_array({device_count() * 1000}, float32, 1);
  const auto f = shard_map([](const Array& block) { return psum(block, "x"); }, mesh, P("x"), P());
  const ReproducibleScope scope;
  const auto first = bits_of(f(x));
  for (int run = 0; run < 5; ++run) EXPECT_SAME_BITS(bits_of(f(x)), first, "psum");
}

}  // namespace
}  // namespace tessera::test
