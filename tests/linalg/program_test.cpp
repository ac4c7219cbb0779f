// Traffic of compiled linear algebra programs, and the exercises for which JAX gathers.
#include <tessera/debug.hpp>
#include <tessera/maps.hpp>
#include <tessera/random.hpp>
#include <tessera/transforms.hpp>

#include "linalg/matrices.hpp"
#include "ops/factor/block_cyclic.hpp"

namespace tessera::test {
namespace {

TEST(Program, no_factorization_of_a_split_matrix_gathers_it) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is split";
  const auto a = positive_definite<double>(16, 1), b = random_matrix<double>(16, 1, 2);
  for (const auto& layout : layouts_of_matrices()) {
    const Array split = device_put(a.array(), layout), right = device_put(b.array(), layout.mesh(), P());
    const auto expect_no_gather = [&](const std::string& text, const char* what) {
      EXPECT_EQ(text.find("all-gather"), std::string::npos) << what << " on " << text_of(layout) << "\n"
                                                            << text;
      EXPECT_NE(text.find("all-to-all"), std::string::npos) << what << "\n" << text;
    };
    expect_no_gather(jit([](const Array& m, const Array& r) { return linalg::solve(m, r); })
                         .lower(split, right)
                         .compile()
                         .as_text(),
                     "solve");
    expect_no_gather(
        jit([](const Array& m) { return linalg::lu_factor(m).lu; }).lower(split).compile().as_text(),
        "lu_factor");
    expect_no_gather(jit([](const Array& m) { return linalg::cholesky(m); }).lower(split).compile().as_text(),
                     "cholesky");
    expect_no_gather(jit([](const Array& m) { return linalg::qr(m).q; }).lower(split).compile().as_text(),
                     "qr");
    expect_no_gather(jit([](const Array& m) { return linalg::eigh(m).v; }).lower(split).compile().as_text(),
                     "eigh");
    expect_no_gather(jit([](const Array& m) { return linalg::svd(m).u; }).lower(split).compile().as_text(),
                     "svd");
  }
}

TEST(Program, substitution_of_few_right_hand_sides_sends_sums_and_no_panels) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is split";
  constexpr std::int64_t n = 64, k = 2;
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = device_put(positive_definite<double>(n, 1).array(), mesh, P("x")),
              b = device_put(ones({n, k}, float64), mesh, P("x"));
  eval({a, b});
  const debug::CommStats stats;
  eval({linalg::triangular_solve(a, b, {.lower = true})});
  EXPECT_LE(stats.bytes("broadcast"), n * k * 8) << "solutions, on grids of several rows";
  EXPECT_LE(stats.bytes("all-reduce"), 4 * n * k * 8) << "of each block's terms, and of the result";
  EXPECT_EQ(stats.calls("all-gather"), 0);
}

TEST(Program, a_split_batch_moves_nothing) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array a = device_put(array(random_values<double>(16 * 5 * 5, 1), Shape{16, 5, 5}), mesh, P("x"));
  eval({a});
  const debug::CommStats stats;
  eval({linalg::inv(a), linalg::qr(a).q, linalg::svd(a).u});
  EXPECT_EQ(stats.bytes(), 0);
}

// Eight systems on the available ranks, each solved in its layout.
TEST(Program, a_batch_of_solvers_through_shard_map) {
  const int ranks = device_count();
  if (8 % ranks != 0) GTEST_SKIP() << "eight systems over " << ranks << " ranks";
  std::vector<Array> as, bs;
  for (int i = 0; i < 8; ++i) {
    as.push_back(random::normal(random::key(i), {16, 16}));
    bs.push_back(random::normal(random::key(i + 8), {16}));
  }
  const Mesh mesh = make_mesh({ranks}, {"x"});
  const Array a = device_put(stack(as), mesh, P("x")), b = device_put(stack(bs), mesh, P("x"));
  const auto solver =
      shard_map([](const Array& block, const Array& right) { return linalg::solve(block, right); }, mesh,
                {P("x"), P("x")}, P("x"));
  const Array x = solver(a, b);
  EXPECT_EQ(x.shape(), (Shape{8, 16}));
  EXPECT_EQ(x.sharding(), NamedSharding(mesh, P("x")));
  for (int i = 0; i < 8; ++i) {
    const auto m = matrix_of<float>(as[i]), xi = matrix_of<float>(x(i)), bi = matrix_of<float>(bs[i]);
    EXPECT_LT(difference(product(m, xi), bi), 1e-4);
  }
}

// The matrix over a mesh of ('x': ranks, 'y': 1), b in any layout.
TEST(Program, a_distributed_linear_solver) {
  const Array a = random::normal(random::key(0), {16, 16}), b = random::normal(random::key(1), {16});
  const Mesh mesh = make_mesh({device_count(), 1}, {"x", "y"});
  const Array split = with_sharding_constraint(a, NamedSharding(mesh, P("x", None)));
  const auto x = matrix_of<float>(linalg::solve(split, b));
  EXPECT_LT(difference(product(matrix_of<float>(a), x), matrix_of<float>(b)), 1e-4);
  const auto [p, l, u] = linalg::lu(split);
  EXPECT_LT(difference(product(product(matrix_of<float>(p), matrix_of<float>(l)), matrix_of<float>(u)),
                       matrix_of<float>(a)),
            1e-5);
}

TEST(Program, vmap_of_solve_is_the_batched_solve) {
  const Array a = array(random_values<double>(6 * 4 * 4, 1), Shape{6, 4, 4}),
              b = array(random_values<double>(4 * 6, 2), Shape{4, 6});
  const auto got = to_vector<double>(vmap([](const Array& m, const Array& r) { return linalg::solve(m, r); },
                                          VmapOptions{.in_axes = {0, 1}})(a, b));
  const auto wanted = to_vector<double>(linalg::solve(a, b.T()));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-10);
}

// ---- the planner of the block-cyclic layout ----

TEST(BlockCyclic, every_index_has_one_owner_and_one_place) {
  for (const std::int64_t n : {0, 1, 7, 16, 23})
    for (const std::int64_t block : {1, 3, 4})
      for (const int parts : {1, 2, 3, 5}) {
        const factor::CyclicDim dim{n, block, parts};
        std::int64_t total = 0;
        for (int p = 0; p < parts; ++p) total += dim.count(p);
        EXPECT_EQ(total, n);
        for (std::int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(dim.global(dim.owner(i), dim.local(i)), i);
          EXPECT_LT(dim.local(i), dim.count(dim.owner(i)));
          std::int64_t below = 0;
          for (std::int64_t j = 0; j < i; ++j) below += dim.owner(j) == dim.owner(i);
          EXPECT_EQ(dim.local(i), below);
        }
      }
}

TEST(BlockCyclic, runs_cover_what_a_box_and_a_part_share) {
  const factor::CyclicDim dim{29, 3, 4};
  for (std::int64_t start = 0; start < 29; start += 5)
    for (std::int64_t stop = start; stop <= 29; stop += 4) {
      std::vector<int> seen(29, 0);
      for (int p = 0; p < 4; ++p)
        for (const auto& run : factor::runs_in(dim, p, {start, stop}))
          for (std::int64_t i = 0; i < run.size; ++i) {
            EXPECT_EQ(dim.global(p, run.in_part + i), start + run.in_box + i);
            ++seen[start + run.in_box + i];
          }
      for (std::int64_t i = 0; i < 29; ++i) EXPECT_EQ(seen[i], i >= start && i < stop);
    }
}

TEST(BlockCyclic, of_several_holders_of_a_box_one_serves_each_receiver) {
  const factor::Rectangle left{{0, 4}, {0, 2}}, right{{0, 4}, {2, 4}};
  const std::vector<factor::Rectangle> held{left, right, left, right, {}};
  for (int receiver = 0; receiver < 5; ++receiver) {
    const auto chosen = factor::servers(held, receiver);
    ASSERT_EQ(chosen.size(), 2u);
    EXPECT_EQ(held[chosen[0]], left);
    EXPECT_EQ(held[chosen[1]], right);
    if (receiver < 4) {
      EXPECT_TRUE(chosen[0] == receiver || chosen[1] == receiver) << "nobody is sent what it holds";
    }
  }
}

}  // namespace
}  // namespace tessera::test
