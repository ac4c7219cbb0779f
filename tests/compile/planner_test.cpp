// The planner's guarantees, checked in texts of compiled programs on abstract meshes: no MPI, no ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/jit.hpp>
#include <tessera/linalg.hpp>

#include "mesh/reshard.hpp"
#include "support/errors.hpp"
#include "support/text.hpp"

namespace tessera {
namespace {

using test::count;
using testing::HasSubstr;
using testing::Not;

const Mesh line = abstract_mesh({4}, {"x"});
const Mesh grid = abstract_mesh({4, 2}, {"x", "y"});

Array placed(Shape shape, const Mesh& mesh, P spec, Dtype dtype = float32) {
  return device_put(zeros(std::move(shape), dtype), mesh, std::move(spec));
}

template <class F, class... A> std::string text_of(F f, const A&... args) {
  return jit(std::move(f)).lower(args...).compile().as_text();
}

int collectives(const std::string& text) {
  return count(text, " all-gather(") + count(text, " all-reduce(") + count(text, " reduce-scatter(") +
         count(text, " all-to-all(") + count(text, " collective-permute(");
}

const auto product = [](Array a, Array b) { return matmul(a, b); };

// Signs of singular vectors are arbitrary: U of one computation does not match V of another.
TEST(Uncommitted, what_has_several_outputs_is_computed_once) {
  const auto text = text_of(
      [](Array y) {
        const auto [u, s, vt] = linalg::svd(cos(reshape(arange(0, 36, 1), {9, 4})), {.full_matrices = false});
        return matmul(transpose(vt), matmul(transpose(u), y) / reshape(s, {4, 1}));
      },
      placed({9, 3}, line, P("x")));
  EXPECT_EQ(count(text, " svd("), 1) << text;
}

TEST(Matmul, row_split_times_column_split_moves_nothing) {
  const Array a = placed({8, 16}, grid, P("x", None)), b = placed({16, 8}, grid, P(None, "y"));
  EXPECT_EQ(collectives(text_of(product, a, b)), 0);
  EXPECT_EQ(matmul(a, b).sharding(), NamedSharding(grid, P("x", "y")));
}

TEST(Matmul, split_inner_dimension_is_one_all_reduce) {
  const Array a = placed({8, 16}, grid, P("x", "y")), b = placed({16, 8}, grid, P("y", None));
  const auto text = text_of(product, a, b);
  EXPECT_EQ(collectives(text), 1) << text;
  EXPECT_THAT(text, HasSubstr("all-reduce"));
  EXPECT_EQ(matmul(a, b).sharding(), NamedSharding(grid, P("x", None)));
}

TEST(Matmul, split_inner_dimension_wanted_split_is_one_reduce_scatter) {
  const Array a = placed({8, 16}, line, P(None, "x")), b = placed({16, 8}, line, P("x", None));
  const auto text = text_of(
      [](Array a, Array b) {
        return with_sharding_constraint(matmul(a, b), NamedSharding(line, P(None, "x")));
      },
      a, b);
  EXPECT_EQ(collectives(text), 1) << text;
  EXPECT_THAT(text, HasSubstr("reduce-scatter"));
}

TEST(Matmul, replicated_operands_cost_nothing) {
  EXPECT_EQ(collectives(text_of(product, placed({8, 16}, line, P("x", None)), placed({16, 8}, line, P()))),
            0);
  EXPECT_EQ(collectives(text_of(product, placed({8, 16}, line, P()), placed({16, 8}, line, P(None, "x")))),
            0);
}

TEST(Matmul, gathers_the_smaller_operand) {
  const auto text =
      text_of(product, placed({4096, 2048}, line, P("x", None)), placed({2048, 1024}, line, P(None, "x")));
  EXPECT_THAT(text, HasSubstr("f32[2048,1024] all-gather(%1) dim=1 axes=x bytes=6291456")) << text;
}

TEST(Elementwise, keeps_the_sharding_and_moves_nothing) {
  const auto text = text_of([](Array x) { return tanh(x) * 2 + x; }, placed({8, 8}, grid, P("y", "x")));
  EXPECT_EQ(collectives(text), 0) << text;
  EXPECT_THAT(text, HasSubstr("fusion[tanh+multiply+add]"));
}

TEST(Reduction, over_a_split_dimension_is_one_all_reduce) {
  EXPECT_EQ(collectives(text_of([](Array x) { return sum(x, 0); }, placed({8, 8}, line, P("x", None)))), 1);
  EXPECT_EQ(collectives(text_of([](Array x) { return sum(x, 1); }, placed({8, 8}, line, P("x", None)))), 0);
}

TEST(Partials, stay_partial_through_linear_ops) {
  const Array a = placed({8, 16}, line, P(None, "x")), b = placed({16, 8}, line, P("x", None));
  const auto text =
      text_of([](Array a, Array b) { return (matmul(a, b) + matmul(a, b * 3)).T() * 0.5f; }, a, b);
  EXPECT_EQ(count(text, " all-reduce("), 1) << text;
}

TEST(Partials, are_combined_before_nonlinear_ops) {
  const Array a = placed({8, 16}, line, P(None, "x")), b = placed({16, 8}, line, P("x", None));
  const auto text = text_of([](Array a, Array b) { return tanh(matmul(a, b)); }, a, b);
  EXPECT_LT(text.find("all-reduce"), text.find("tanh(")) << text;
}

TEST(Partials, of_several_small_sums_share_one_message) {
  const auto text = text_of([](Array x, Array y) { return std::make_pair(sum(x, 0), sum(y, 0)); },
                            placed({8, 8}, line, P("x", None)), placed({8, 3}, line, P("x", None)));
  EXPECT_EQ(count(text, " all-reduce("), 1) << text;
}

TEST(Sharing, a_gather_is_done_once) {
  const Array a = placed({64, 16}, line, P("x", None)), b = placed({16, 8}, line, P(None, "x"));
  const auto text = text_of([](Array a, Array b) { return matmul(a, b) + matmul(a * 2, b); }, a, b);
  EXPECT_EQ(count(text, " all-gather("), 1) << text;
}

TEST(Sharing, equal_subexpressions_are_computed_once) {
  const auto text = text_of([](Array x) { return std::make_pair(sum(exp(x), 1), max(exp(x), 1)); },
                            placed({8, 8}, line, P("x", None)));
  EXPECT_EQ(count(text, " exp("), 1) << text;
}

TEST(DeadCode, is_not_compiled) {
  const auto text = text_of(
      [](Array x) {
        const Array unused = matmul(x, x);
        return x + 1;
      },
      placed({8, 8}, line, P("x", None)));
  EXPECT_THAT(text, Not(HasSubstr("dot")));
}

TEST(Backward, a_constraint_is_computed_in_place) {
  const auto text =
      text_of([](Array x) { return with_sharding_constraint(sin(x) * 2, NamedSharding(line, P("x", None))); },
              placed({8, 8}, line, P()));
  EXPECT_THAT(text, HasSubstr("f32[2,8] fusion[sin+multiply]")) << text;
  EXPECT_EQ(collectives(text), 0) << text;
}

TEST(Backward, out_shardings_are_pulled_through) {
  const auto f =
      jit([](Array x) { return exp(x); }, JitOptions{.out_shardings = NamedSharding(line, P(None, "x"))});
  const auto compiled = f.lower(placed({8, 8}, line, P())).compile();
  EXPECT_EQ(compiled.output_shardings().at(0), NamedSharding(line, P(None, "x")));
  EXPECT_EQ(collectives(compiled.as_text()), 0) << compiled.as_text();
}

TEST(Reshards, in_a_row_are_one) {
  const auto text =
      text_of([](Array x) { return device_put(device_put(x, line, P("x", None)), line, P(None, "x")); },
              placed({8, 8}, line, P()));
  EXPECT_EQ(collectives(text), 0) << text;
}

TEST(Uncommitted, operands_are_computed_in_the_layout_of_the_others) {
  const auto text = text_of(
      [](Array x) {
        return x + reshape(arange(64.f), {8, 8});
      },
      placed({8, 8}, line, P("x", None)));
  EXPECT_EQ(collectives(text), 0) << text;
  EXPECT_THAT(text, HasSubstr("f32[16] iota()")) << text;
}

// The alternative, gathering the thin operand and computing the square on every rank, moves less but takes
// eight times as long.
TEST(Explain, a_product_is_not_repeated_on_every_rank_to_save_bytes) {
  const Mesh eight = abstract_mesh({8}, {"x"});
  const auto gram_squared = [](Array x) {
    const Array gram = matmul(x, x.T());
    return matmul(gram, gram);
  };
  for (const std::int64_t k : {16, 512, 1000}) {
    const std::int64_t n = 1024;
    const auto e = explain(gram_squared, placed({n, k}, eight, P("x", None)));
    EXPECT_LE(e.cost.flops, 1.01 * 2.0 * static_cast<double>(n * n * k + n * n * n) / 8) << e;
    EXPECT_LE(e.bytes("all-gather"), 7 * (n * n + n * k) * 4 / 8) << e;
  }
}

// An op whose operand is replicated for another reader still computes only its own block.
TEST(Propagation, an_op_on_whole_operands_computes_only_the_block_that_is_wanted) {
  const auto split = NamedSharding(line, P("x", None));
  const auto text = text_of(
      [&](Array a, Array b) { return with_sharding_constraint(matmul(device_put(a, line, P()), b), split); },
      placed({64, 64}, line, P("x")), placed({64, 64}, line, P()));
  EXPECT_THAT(text, HasSubstr("f32[16,64] dot(")) << text;
  EXPECT_EQ(collectives(text), 0) << text;
}

TEST(Explain, a_8192_product_on_4096_ranks_is_planned_at_once) {
  const Mesh big = abstract_mesh({64, 64}, {"x", "y"});
  const auto e =
      explain(product, placed({8192, 8192}, big, P("x", "y")), placed({8192, 8192}, big, P("x", "y")));
  EXPECT_EQ(e.calls("all-gather"), 2);
  EXPECT_EQ(e.bytes(), 2 * 63 * 128 * 128 * 4);
  EXPECT_THROW(e.forbid("all-gather"), ShardingError);
  EXPECT_NO_THROW(e.forbid("all-to-all"));
  EXPECT_THROW(e.forbid("allgather"), ArgumentError);  // a misspelt guard would guard nothing
  EXPECT_THROW(e.limit_bytes(1 << 20), ShardingError);
}

TEST(Jit, shardings_of_trees_are_trees) {
  using Pair = std::pair<Array, Array>;
  const auto x = NamedSharding(line, P("x")), none = NamedSharding(line, P());
  const auto f = jit(
      [](Pair p, int, Array y) {
        return std::tuple{Pair{p.first + 1, p.second + y}, std::vector<Array>{y, y * 2}};
      },
      {.in_shardings = {{x, none}, None, x}, .out_shardings = {{none, x}, {None, none}}});
  const auto compiled = f.lower(Pair{zeros({8}), zeros({8})}, 3, zeros({8})).compile();
  EXPECT_EQ(compiled.input_shardings(), (std::vector<Sharding>{x, none, x}));
  EXPECT_EQ(compiled.output_shardings(), (std::vector<Sharding>{none, x, x, none}));
  // A number needs no sharding entry.
  const auto g = jit([](Array a, int, Array b) { return a + b; }, {.in_shardings = {x, x}});
  EXPECT_EQ(g.lower(zeros({8}), 3, zeros({8})).compile().output_shardings()[0], x);
}

TEST(Jit, options_that_fit_no_argument_are_refused) {
  const auto x = NamedSharding(line, P("x"));
  const auto identity = [](Array a) { return a; };
  const auto told = [&](JitOptions options) {
    return test::error_of<ArgumentError>([&] { jit(identity, options).lower(zeros({8})); });
  };
  EXPECT_THAT(told({.in_shardings = {x, x}}),
              HasSubstr("in_shardings: the list of arguments has 1 parts, but the list given for it has 2"));
  EXPECT_THAT(told({.out_shardings = {x, x}}),
              HasSubstr("out_shardings: the result is one array, but the list given for it has 2"));
  EXPECT_THAT(told({.donate_argnums = {1}}),
              HasSubstr("donate_argnums names argument 1, but the function was called with 1"));
  EXPECT_THAT(told({.static_argnums = {-2}}), HasSubstr("static_argnums names argument -2"));
  EXPECT_THAT(told({.static_argnums = {0}}),
              HasSubstr("argument 0 is named in static_argnums, but holds an array"));
  EXPECT_NO_THROW(jit(identity, JitOptions{.donate_argnums = {-1}}).lower(zeros({8})));
}

TEST(Jit, refuses_an_argument_that_disagrees_with_in_shardings) {
  const auto f = jit([](Array x) { return x; }, JitOptions{.in_shardings = NamedSharding(line, P("x"))});
  try {
    f.lower(placed({8}, line, P()));
    FAIL() << "no error";
  } catch (const ShardingError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("in_shardings"), HasSubstr("P('x')"), HasSubstr("device_put")));
  }
}

TEST(Devices, different_orders_are_refused_with_both_named) {
  const auto ids = line.devices();
  const Mesh turned(NdDevices(std::vector<Device>(ids.rbegin(), ids.rend())), {"x"});
  try {
    placed({8}, line, P("x")) + placed({8}, turned, P("x"));
    FAIL() << "no error";
  } catch (const ShardingError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("device orders"), HasSubstr("[0, 1, 2, 3]"),
                                             HasSubstr("[3, 2, 1, 0]"), HasSubstr("device_put"),
                                             HasSubstr("planner_test.cpp")));
  }
}

TEST(Meshes, of_the_same_devices_may_be_mixed) {
  const Mesh flat = abstract_mesh({8}, {"d"});
  const Array a = device_put(zeros({8, 8}), NamedSharding(flat, P("d"))),
              b = placed({8, 8}, grid, P(axes("x", "y")));
  EXPECT_EQ(collectives(text_of([](Array a, Array b) { return a + b; }, a, b)), 0);
}

TEST(Memory, an_analysis_counts_arguments_results_and_the_peak) {
  const auto m = jit([](Array x) { return sum(x * 2, 0); })
                     .lower(placed({1024, 1024}, line, P("x", None)))
                     .compile()
                     .memory_analysis();
  EXPECT_GE(m.argument_bytes, 1 << 20);
  EXPECT_EQ(m.output_bytes, 4096);
  EXPECT_EQ(m.peak_bytes, m.argument_bytes + m.output_bytes + m.temporary_bytes);
  EXPECT_LT(m.temporary_bytes, 1 << 20) << "the chain ends in its reduction: its result is never stored";
}

TEST(Fusion, a_chain_ends_in_its_reduction) {
  const auto text = text_of([](Array x) { return sum(exp(x) * 2, 1); }, placed({8, 8}, line, P("x", None)));
  EXPECT_THAT(text, HasSubstr("f32[2] fusion[exp+multiply+sum]")) << text;
}

TEST(Fusion, a_chain_that_is_read_twice_is_stored) {
  const auto text = text_of(
      [](Array x) {
        const Array y = exp(x) * 2;
        return std::make_pair(sum(y, 1), y);
      },
      placed({8, 8}, line, P("x", None)));
  EXPECT_THAT(text, Not(HasSubstr("multiply+sum"))) << text;
}

}  // namespace
}  // namespace tessera
