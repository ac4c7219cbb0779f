// Plans of products whose operands are not in the needed layout, on abstract meshes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>
#include <tessera/ops/products.hpp>

#include "ops/contract/product_plan.hpp"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

Array placed(Shape shape, const Mesh& mesh, P spec, Dtype dtype = float32) {
  return device_put(zeros(std::move(shape), dtype), mesh, std::move(spec));
}
const auto product = [](Array a, Array b) { return matmul(a, b); };

const PlannedCandidate& chosen(const Explanation& e) {
  for (const auto& candidate : e.choices.at(0).candidates)
    if (candidate.chosen) return candidate;
  throw std::logic_error("nothing was chosen");
}

TEST(PieceEnds, long_parts_are_cut_evenly) {
  EXPECT_THAT(piece_ends(10, {}, {}, 4), ElementsAre(3, 6, 10));
  EXPECT_THAT(piece_ends(10, {}, {}, 10), ElementsAre(10));
}
TEST(PieceEnds, pieces_end_where_blocks_end) {
  EXPECT_THAT(piece_ends(12, {5}, {}, 3), ElementsAre(2, 5, 7, 9, 12));
}
TEST(PieceEnds, short_blocks_are_joined) {
  EXPECT_THAT(piece_ends(12, {2, 4, 6, 8, 10}, {}, 5), ElementsAre(4, 8, 12));
}
TEST(PieceEnds, nothing_is_joined_across_hard_marks) {
  EXPECT_THAT(piece_ends(12, {2, 4, 6, 8, 10}, {6}, 5), ElementsAre(4, 6, 10, 12));
}
TEST(PieceEnds, nothing_has_no_pieces) { EXPECT_THAT(piece_ends(0, {}, {}, 5), ElementsAre()); }

TEST(ProductPlan, matrices_of_400000_on_a_hundred_thousand_ranks_take_a_few_panels) {
  const Mesh big = abstract_mesh({400, 250}, {"x", "y"});
  const auto e = explain(product, placed({400'000, 400'000}, big, P("x", "y")),
                         placed({400'000, 400'000}, big, P("x", "y")));
  EXPECT_LE(e.memory.temporary_bytes, 4 * mebibyte) << e;
  EXPECT_EQ(e.calls("all-gather"), 0) << e;
  EXPECT_GT(e.bytes("panels"), 0) << e;
  EXPECT_LE(e.cost.flops, 1.01 * 2 * 400'000. * 400'000. * 400'000. / 100'000) << e;
}

TEST(ProductPlan, rows_times_rows_hold_a_few_panels_of_the_other_operand) {
  const Mesh row = abstract_mesh({64}, {"x"});
  const std::int64_t n = 65'536, block = n * n * 8 / 64;
  const auto e = explain(product, placed({n, n}, row, P("x", None), float64),
                         placed({n, n}, row, P("x", None), float64));
  EXPECT_LE(e.memory.temporary_bytes, 3 * block / 8) << e;
  EXPECT_EQ(e.bytes("panels"), 63 * block) << e;
}

TEST(ProductPlan, every_pair_of_layouts_keeps_to_the_memory_of_its_blocks) {
  const std::int64_t n = 8192;
  for (const int ranks : {2, 4, 8, 64}) {
    const Mesh line = abstract_mesh({ranks}, {"x"});
    const Mesh grid =
        ranks == 2 ? abstract_mesh({2, 1}, {"x", "y"}) : abstract_mesh({ranks / 2, 2}, {"x", "y"});
    for (const Mesh& mesh : {line, grid}) {
      const std::string last = mesh.ndim() == 2 ? "y" : "x";
      const std::vector<P> specs = {P("x", None), P(None, last), P()};
      for (const P& of_a : specs)
        for (const P& of_b : specs) {
          const auto e =
              explain(product, placed({n, n}, mesh, of_a, float64), placed({n, n}, mesh, of_b, float64));
          const auto blocks = e.memory.argument_bytes + e.memory.output_bytes;
          EXPECT_LE(e.memory.temporary_bytes, blocks / 9 + 8 * mebibyte) << mesh << of_a << of_b << "\n" << e;
        }
    }
  }
}

TEST(ProductPlan, small_operands_are_moved_whole) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto e =
      explain(product, placed({256, 256}, line, P("x", None)), placed({256, 256}, line, P("x", None)));
  EXPECT_EQ(e.calls("all-gather"), 1) << e;
  EXPECT_THAT(chosen(e).strategy, HasSubstr("moved whole"));
}

TEST(ProductPlan, explain_lists_the_candidates_and_why_one_won) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto e = explain(product, placed({16'384, 16'384}, line, P("x", None)),
                         placed({16'384, 16'384}, line, P("x", None)));
  ASSERT_EQ(e.choices.size(), 1u) << e;
  EXPECT_EQ(e.choices[0].candidates.size(), 3u) << e;
  EXPECT_EQ(e.choices[0].candidates[0].temporary_bytes, 1024 * mebibyte) << e;
  EXPECT_THAT(e.choices[0].candidates[0].why, HasSubstr("over the limit of 85.3 MiB"));
  EXPECT_THAT(chosen(e).strategy, HasSubstr("panels of the"));
  EXPECT_THAT(to_string(e), HasSubstr("candidates for dot at product_test.cpp"));
}

// Small 16-bit operands are gathered unconverted; large ones are fetched in pieces as float32 is.
TEST(ProductPlan, halves_are_gathered_narrow_or_fetched_in_pieces) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto of = [&](std::int64_t n, Dtype dtype) {
    return explain(product, placed({n, n}, line, P("x", None), dtype),
                   placed({n, n}, line, P("x", None), dtype));
  };
  EXPECT_EQ(of(256, bfloat16).bytes("all-gather"), 3 * 256 * 256 * 2 / 4);
  EXPECT_EQ(of(256, float32).bytes("all-gather"), 3 * 256 * 256 * 4 / 4);
  const auto wide = of(8192, float32), narrow = of(8192, bfloat16);
  EXPECT_EQ(narrow.bytes("panels"), wide.bytes("panels")) << narrow;
  EXPECT_EQ(narrow.bytes("all-gather"), 0) << narrow;
  // Temporaries besides the panels: both operands and the result as float32.
  EXPECT_LE(narrow.memory.temporary_bytes, wide.memory.temporary_bytes + 3 * 64 * mebibyte) << narrow;
}

TEST(ProductPlan, the_limit_is_the_users_where_one_is_given) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto limited = [](Array a, Array b) { return matmul(a, b, {.memory_limit_bytes = 3 * mebibyte}); };
  const auto e =
      explain(limited, placed({2048, 2048}, line, P("x", None)), placed({2048, 2048}, line, P("x", None)));
  EXPECT_LE(e.memory.temporary_bytes, 3 * mebibyte) << e;
  EXPECT_EQ(e.bytes("panels"), 3 * 4 * mebibyte) << e;
}

TEST(ProductPlan, an_algorithm_can_be_asked_for) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const Array a = placed({512, 512}, line, P("x", None)), b = placed({512, 512}, line, P("x", None));
  const auto strategy = [&](ProductAlgorithm algorithm) {
    return chosen(explain([&](Array x, Array y) { return matmul(x, y, {.algorithm = algorithm}); }, a, b))
        .strategy;
  };
  EXPECT_THAT(strategy(ProductAlgorithm::whole), HasSubstr("moved whole"));
  EXPECT_THAT(strategy(ProductAlgorithm::inner_panels), HasSubstr("panels of the inner dimension"));
  EXPECT_THAT(strategy(ProductAlgorithm::column_panels), HasSubstr("panels of the columns"));
  EXPECT_THAT(strategy(ProductAlgorithm::row_panels), HasSubstr("moved whole"));  // a's rows are all local
}

TEST(ProductPlan, ranks_that_hold_the_same_share_a_large_product) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const std::int64_t n = 2048;
  const auto e = explain(product, placed({n, n}, line, P()), placed({n, n}, line, P()));
  EXPECT_LE(e.cost.flops, 1.01 * 2 * 2048. * 2048. * 2048. / 4) << e;
  EXPECT_EQ(e.bytes("all-gather"), 3 * n * n * 4 / 4) << e;
  EXPECT_EQ(e.memory.temporary_bytes, 0) << e;
  EXPECT_EQ(matmul(placed({n, n}, line, P()), placed({n, n}, line, P())).sharding(),
            NamedSharding(line, P()));
}

// A layer fetches a part of the inner dim, of rows and of columns: n/4 x n/4 of each operand. Sharing rows
// over z would fetch 3/4 of a block of a, 3 of b, and gather 3/4.
TEST(ProductPlan, layers_of_a_grid_share_the_inner_dimension) {
  const Mesh cube = abstract_mesh({4, 4, 4}, {"x", "y", "z"});
  const std::int64_t n = 16'384, block = n * n * 4 / 16;
  const auto e = explain(product, placed({n, n}, cube, P("x", "y")), placed({n, n}, cube, P("x", "y")));
  EXPECT_THAT(chosen(e).strategy, HasSubstr(", inner dimension shared over z")) << e;
  EXPECT_THAT(to_string(e), HasSubstr(", work shared over z")) << e;
  EXPECT_EQ(e.bytes("panels"), 2 * block) << e;
  EXPECT_EQ(e.bytes("all-reduce"), 2 * block * 3 / 4) << e;
  EXPECT_EQ(chosen(e).bytes, e.bytes()) << e;
  EXPECT_EQ(e.bytes("all-gather"), 0) << e;
  EXPECT_LE(e.cost.flops, 1.01 * 2 * 16'384. * 16'384. * 16'384. / 64) << e;
  EXPECT_LE(e.memory.temporary_bytes, 3 * block / 8) << e;
}

TEST(ProductPlan, layers_of_a_hundred_thousand_ranks_share_the_inner_dimension) {
  const Mesh big = abstract_mesh({50, 50, 40}, {"x", "y", "z"});
  const std::int64_t n = 400'000;
  const auto e = explain(product, placed({n, n}, big, P("x", "y")), placed({n, n}, big, P("x", "y")));
  EXPECT_THAT(chosen(e).strategy, HasSubstr(", inner dimension shared over z")) << e;
  EXPECT_LE(e.cost.flops, 1.01 * 2 * 400'000. * 400'000. * 400'000. / 100'000) << e;
  const auto on_one_layer = explain(product, placed({n, n}, abstract_mesh({50, 50}, {"x", "y"}), P("x", "y")),
                                    placed({n, n}, abstract_mesh({50, 50}, {"x", "y"}), P("x", "y")));
  EXPECT_LE(15 * e.bytes(), on_one_layer.bytes()) << e;
}

TEST(ProductPlan, a_small_result_of_long_operands_is_not_computed_by_all_ranks_alike) {
  const Mesh line = abstract_mesh({8}, {"x"});
  for (const std::int64_t k : {std::int64_t{100'000}, std::int64_t{1'000'003}}) {
    const auto e = explain(product, placed({4, k}, line, P()), placed({k, 4}, line, P()));
    EXPECT_THAT(chosen(e).strategy, HasSubstr("inner dimension shared over x")) << e;
    EXPECT_EQ(e.bytes(), e.bytes("all-reduce")) << e;
    EXPECT_EQ(e.bytes("all-reduce"), 2 * 7 * 16 * 4 / 8) << e;
    EXPECT_LE(e.cost.flops, 1.01 * 2 * 16 * static_cast<double>(k) / 8) << e;
  }
  const auto dot = explain(product, placed({1'000'000}, line, P()), placed({1'000'000}, line, P()));
  EXPECT_EQ(dot.calls("all-reduce"), 1) << dot;
}

// A large result gathers its rows once; terms would be sent twice.
TEST(ProductPlan, rows_are_shared_where_terms_would_send_more) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto e = explain(product, placed({2048, 2048}, line, P()), placed({2048, 2048}, line, P()));
  EXPECT_THAT(chosen(e).strategy, HasSubstr("work shared over x")) << e;
  const auto asked = [](Array a, Array b) {
    return matmul(a, b, {.algorithm = ProductAlgorithm::inner_shared});
  };
  const auto summed = explain(asked, placed({2048, 2048}, line, P()), placed({2048, 2048}, line, P()));
  EXPECT_THAT(chosen(summed).strategy, HasSubstr("inner dimension shared over x")) << summed;
  EXPECT_EQ(summed.bytes("all-reduce"), 2 * e.bytes("all-gather")) << summed;
}

// The terms over x of a split inner dim are added by the plan, those over y by the product.
TEST(ProductPlan, a_split_inner_dimension_is_shared_further) {
  const Mesh grid = abstract_mesh({2, 4}, {"x", "y"});
  const auto e = explain(product, placed({3, 1'000'000}, grid, P(None, "x"), float64),
                         placed({1'000'000, 5}, grid, P("x", None), float64));
  EXPECT_EQ(e.calls("all-reduce"), 2) << e;
  EXPECT_LE(e.cost.flops, 1.01 * 2 * 15 * 1e6 / 8) << e;
}

TEST(ProductPlan, no_pair_of_layouts_repeats_the_work) {
  const std::int64_t n = 4096;
  const Mesh grid = abstract_mesh({2, 2}, {"x", "y"});
  const std::vector<P> specs = {P(axes("x", "y"), None), P(None, axes("x", "y")), P("x", "y"), P()};
  for (const P& of_a : specs)
    for (const P& of_b : specs) {
      const auto e =
          explain(product, placed({n, n}, grid, of_a, float64), placed({n, n}, grid, of_b, float64));
      EXPECT_LE(e.cost.flops, 1.01 * 2 * 4096. * 4096. * 4096. / 4) << of_a << of_b << "\n" << e;
    }
}

TEST(ProductPlan, rows_times_rows_on_any_grid_are_split_over_all_ranks) {
  const std::int64_t n = 1024;
  for (const auto& sizes : std::vector<std::vector<int>>{{2, 2}, {2, 4}, {4, 2}, {8, 8}, {3, 5}}) {
    const Mesh grid = abstract_mesh(sizes, {"x", "y"});
    const P rows(axes("x", "y"), None);
    EXPECT_EQ(matmul(placed({n, n}, grid, rows), placed({n, n}, grid, rows)).sharding(),
              NamedSharding(grid, rows))
        << grid;
  }
}

TEST(ProductPlan, tall_operands_are_summed_over_the_inner_dimension_instead_of_gathered) {
  const Mesh line = abstract_mesh({8}, {"x"});
  const auto e = explain([](Array a, Array b) { return matmul(a.T(), b); },
                         placed({43'417, 217}, line, P("x", None), float64),
                         placed({43'417, 217}, line, P("x", None), float64));
  EXPECT_EQ(e.calls("all-reduce"), 1) << e;
  EXPECT_LE(e.bytes(), 2 * 217 * 217 * 8) << e;
}

TEST(ProductPlan, gradients_read_transposed_operands_where_they_lie) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto gradient = grad<0, 1>([](Array a, Array b) { return sum(matmul(a, b) * matmul(a, b)); });
  const auto text = jit(gradient)
                        .lower(placed({512, 256}, line, P("x", None)), placed({256, 384}, line, P()))
                        .compile()
                        .as_text();
  EXPECT_THAT(text, testing::Not(HasSubstr("transpose"))) << text;
}

TEST(ProductPlan, a_sum_of_which_ranks_keep_blocks_grows_along_a_ring) {
  const Mesh line = abstract_mesh({8}, {"x"});
  const std::int64_t n = 8192, block = n * n * 4 / 8;
  const auto e = jit(product, {.out_shardings = NamedSharding(line, P("x", None))})
                     .lower(placed({n, n}, line, P(None, "x")), placed({n, n}, line, P("x", None)))
                     .compile()
                     .explanation();
  EXPECT_EQ(e.calls(), 1) << e;
  EXPECT_EQ(e.bytes("reduce-scatter"), 7 * block) << e;
  EXPECT_LE(e.memory.temporary_bytes, 3 * block / 8) << e;
}

TEST(ProductPlan, small_replicated_products_send_nothing) {
  const Mesh line = abstract_mesh({4}, {"x"});
  EXPECT_EQ(explain(product, placed({64, 64}, line, P()), placed({64, 64}, line, P())).bytes(), 0);
}

TEST(ProductPlan, an_operand_that_others_need_whole_is_moved_once) {
  const Mesh line = abstract_mesh({4}, {"x"});
  const auto both = [&](Array a, Array b) {
    const Array whole = device_put(b, line, P());
    return std::vector<Array>{matmul(a, whole), whole};
  };
  const auto e =
      explain(both, placed({8192, 8192}, line, P("x", None)), placed({8192, 8192}, line, P("x", None)));
  EXPECT_EQ(e.calls("all-gather"), 1) << e;
  EXPECT_EQ(e.calls("panels"), 0) << e;
}

}  // namespace
}  // namespace tessera
