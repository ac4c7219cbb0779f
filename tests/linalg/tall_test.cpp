// Tall and narrow matrices split by rows: their traffic, and accuracy equal to the unsplit matrix.
#include "ops/factor/tall.hpp"

#include <tessera/debug.hpp>
#include <tessera/random.hpp>
#include <tessera/transforms.hpp>

#include <functional>
#include <set>

#include "linalg/matrices.hpp"

namespace tessera::test {
namespace {

using Kind = factor::TallStep::Kind;

// ---- the plan ----

// Simulates every rank's steps with sets of ranks in place of triangles; a message waits for its receiver.
struct Simulated {
  explicit Simulated(int ranks) : known(ranks), received(ranks, 0), has_q(ranks, false) {
    std::vector<std::vector<factor::TallStep>> steps;
    std::vector<std::size_t> at(ranks, 0);
    for (int r = 0; r < ranks; ++r) steps.push_back(factor::tall_steps(ranks, r)), known[r] = {r};
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < ranks; ++r) {
        if (at[r] == steps[r].size()) continue;
        const auto step = steps[r][at[r]];
        const int peer = step.peer;
        if (at[peer] == steps[peer].size()) continue;
        const auto other = steps[peer][at[peer]];
        if (other.peer != r || r > peer) continue;
        match(r, step.kind, peer, other.kind);
        ++at[r], ++at[peer], moved = true;
      }
    }
    for (int r = 0; r < ranks; ++r) finished &= at[r] == steps[r].size();
  }
  void match(int low, Kind low_kind, int high, Kind high_kind) {
    if (low_kind == Kind::exchange) {
      ASSERT_EQ(high_kind, Kind::exchange);
      known[low].insert(known[high].begin(), known[high].end());
      known[high] = known[low];
      ++received[low], ++received[high];
    } else if (low_kind == Kind::receive) {
      ASSERT_EQ(high_kind, Kind::send);
      known[low].insert(high);
      ++received[low];
    } else {
      ASSERT_EQ(low_kind, Kind::return_q);
      ASSERT_EQ(high_kind, Kind::receive_q);
      has_q[high] = true;
    }
  }
  std::vector<std::set<int>> known;
  std::vector<int> received;  // triangles
  std::vector<bool> has_q;
  bool finished = true;
};

TEST(TallPlan, every_triangle_reaches_every_rank_of_the_butterfly_in_log2_rounds) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    const Simulated run(ranks);
    EXPECT_TRUE(run.finished) << ranks << " ranks: somebody waits for ever";
    int inside = 1, rounds = 0;
    while (2 * inside <= ranks) inside *= 2, ++rounds;
    for (int r = 0; r < ranks; ++r) {
      if (r < inside) {
        EXPECT_EQ(run.known[r].size(), static_cast<std::size_t>(ranks)) << r << " of " << ranks;
        EXPECT_LE(run.received[r], rounds + 1);
      } else {
        EXPECT_TRUE(run.has_q[r]) << r << " of " << ranks << " is told its part of Q";
      }
    }
  }
}

TEST(TallPlan, the_cost_is_what_the_busiest_rank_receives) {
  constexpr std::int64_t n = 16;
  const Type matrix{Shape{200000, n}, float64};
  for (int ranks = 1; ranks <= 40; ++ranks) {
    const Simulated run(ranks);
    std::int64_t most = 0;
    for (int r = 0; r < ranks; ++r)
      most = std::max<std::int64_t>(most, run.received[r] * (n * (n + 1) / 2) + (run.has_q[r] ? n * n : 0));
    EXPECT_EQ(factor::tall_costs(matrix, {0}, ranks, true, 0, 1)[0].bytes, most * 8) << ranks << " ranks";
  }
}

TEST(TallPlan, is_for_blocks_with_as_many_rows_as_columns) {
  EXPECT_TRUE(factor::is_tall(64, 16, 4));
  EXPECT_TRUE(factor::is_tall(61, 16, 4)) << "the last block may be shorter";
  EXPECT_FALSE(factor::is_tall(60, 16, 4));
  EXPECT_FALSE(factor::is_tall(64, 0, 4));
  EXPECT_FALSE(factor::is_tall(1 << 20, 513, 4)) << "the ranks repeat each other's work on n x n";
}

// ---- traffic ----

Array split_rows(const Array& a) { return device_put(a, make_mesh({device_count()}, {"x"}), P("x", None)); }

std::int64_t bytes_of(const std::function<std::vector<Array>(const Array&)>& f, const Array& a) {
  eval({a});
  const debug::CommStats stats;
  eval(f(a));
  return most_of_any_rank(stats.bytes());
}

// At 4 ranks a rank receives 3,392 bytes: two triangles of 136 numbers, and r with its signs.
TEST(Tall, qr_of_200000_x_16_moves_triangles) {
  const Array a = split_rows(random::normal(random::key(1), {200000, 16}, float64));
  const int ranks = device_count();
  int rounds = 0;
  for (int inside = 1; 2 * inside <= ranks; inside *= 2) ++rounds;
  const bool is_power = (ranks & (ranks - 1)) == 0;
  const std::int64_t moved = bytes_of(
      [](const Array& x) {
        const auto [q, r] = linalg::qr(x);
        return std::vector<Array>{q, r};
      },
      a);
  const std::int64_t triangles = (rounds + !is_power) * 136 * 8, told = (136 + 16) * 8;
  if (ranks == 1) {
    EXPECT_EQ(moved, 0);
  } else if (is_power) {
    EXPECT_EQ(moved, triangles + told);
  } else {
    EXPECT_LE(moved, triangles + told);  // rank 0 takes one more triangle, but no broadcast
  }
  const auto plan = explain([](const Array& x) { return linalg::qr(x).q; }, a);
  EXPECT_EQ(plan.bytes(), moved) << "explain says what CommStats counts";
}

TEST(Tall, svd_of_200000_x_16_over_4_ranks_moves_6_k_b) {
  const Array a = split_rows(random::normal(random::key(1), {200000, 16}, float64));
  const auto reduced = [](const Array& x) {
    const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
    return std::vector<Array>{u, s, vh};
  };
  const std::int64_t moved = bytes_of(reduced, a);
  if (device_count() == 4) {
    EXPECT_EQ(moved, 2 * 136 * 8 + (1 + 16 + 2 * 256) * 8);
  }
  EXPECT_LE(moved, 10000);
  EXPECT_EQ(explain(reduced, a).bytes(), moved);
}

TEST(Tall, what_stands_on_the_svd_moves_no_row) {
  const Array a = split_rows(random::normal(random::key(1), {20000, 16}, float64)),
              b = split_rows(random::normal(random::key(2), {20000, 1}, float64));
  EXPECT_LE(bytes_of([&](const Array& x) { return std::vector<Array>{linalg::lstsq(x, b)}; }, a), 20000);
  EXPECT_LE(bytes_of([](const Array& x) { return std::vector<Array>{linalg::pinv(x)}; }, a), 20000);
  EXPECT_LE(bytes_of([](const Array& x) { return std::vector<Array>{linalg::matrix_rank(x)}; }, a), 6000);
  EXPECT_LE(bytes_of([](const Array& x) { return std::vector<Array>{linalg::norm(x, 2)}; }, a), 6000);
  EXPECT_LE(bytes_of([](const Array& x) { return std::vector<Array>{linalg::cond(x)}; }, a), 6000);
}

// ---- results ----

template <class T>
void expect_small(const Matrix<T>& got, const Matrix<T>& wanted, double scale, const std::string& what) {
  EXPECT_LE(difference(got, wanted),
            50 * eps<T>() * static_cast<double>(std::max(got.rows, got.columns)) * std::max(scale, 1e-300))
      << what;
}

std::vector<Sharding> tall_layouts() {
  auto layouts = layouts_of_matrices();
  for (int r = 2; r < device_count(); ++r)
    if (device_count() % r == 0) {
      const Mesh grid = make_mesh({r, device_count() / r}, {"x", "y"});
      layouts.push_back(NamedSharding(grid, P(axes("y", "x"), None)));  // blocks in another order than ranks
      layouts.push_back(NamedSharding(grid, P("y", None)));             // several groups hold each matrix
    }
  return layouts;
}

// Rows that do not divide, ranks without a row, n = 1, blocks as high as wide.
const std::vector<std::pair<std::int64_t, std::int64_t>> tall_shapes{{9, 1}, {9, 2}, {400, 9}, {97, 7}};

template <class T> void expect_qr(const Matrix<T>& a, const Sharding& layout, const std::string& what) {
  const auto split = linalg::qr(device_put(a.array(), layout)), whole = linalg::qr(a.array());
  const auto q = matrix_of<T>(split.q), r = matrix_of<T>(split.r);
  EXPECT_EQ(split.q.sharding(), layout) << what;
  expect_small(product(q, r), a, one_norm(a), what);
  expect_small(product(adjoint(q), q), identity<T>(q.columns), 1, what + ": orthonormal");
  expect_small(r, matrix_of<T>(whole.r), one_norm(a) * 100, what + ": r as of the whole matrix");
  for (std::int64_t i = 0; i < r.rows; ++i)
    for (std::int64_t j = 0; j < i; ++j) ASSERT_EQ(r(i, j), T(0)) << what;
}
template <class T> void expect_svd(const Matrix<T>& a, const Sharding& layout, const std::string& what) {
  const auto split = linalg::svd(device_put(a.array(), layout), {.full_matrices = false});
  auto u = matrix_of<T>(split.u);
  const auto vh = matrix_of<T>(split.vh);
  const auto s = to_vector<real_part<T>>(split.s),
             wanted = to_vector<real_part<T>>(linalg::svdvals(a.array())),
             alone = to_vector<real_part<T>>(linalg::svdvals(device_put(a.array(), layout)));
  expect_small(product(adjoint(u), u), identity<T>(u.columns), 1, what + ": u is orthonormal");
  expect_small(product(vh, adjoint(vh)), identity<T>(vh.rows), 1, what + ": vh is orthonormal");
  for (std::int64_t j = 0; j < u.columns; ++j) {
    EXPECT_NEAR(s[j], wanted[j], 50 * eps<T>() * static_cast<double>(a.rows) * one_norm(a)) << what;
    EXPECT_NEAR(alone[j], wanted[j], 50 * eps<T>() * static_cast<double>(a.rows) * one_norm(a)) << what;
    for (std::int64_t i = 0; i < u.rows; ++i) u(i, j) *= T(s[j]);
  }
  expect_small(product(u, vh), a, one_norm(a), what);
}

TEST(Tall, qr_and_svd_on_every_layout_and_type) {
  std::size_t number = 0;
  for (const auto& layout : tall_layouts())
    for (const auto& [m, n] : tall_shapes)
      for_types(AllTypes{}, [&, m = m, n = n](auto zero) {
        using T = decltype(zero);
        if (device_count() > 4 && ++number % 3 != 1) return;
        const auto a = random_matrix<T>(m, n, 3);
        const std::string what =
            text_of(layout) + " " + std::to_string(m) + "x" + std::to_string(n) + " " + name(dtype_of<T>());
        expect_qr(a, layout, what);
        expect_svd(a, layout, what);
      });
}

// Columns that agree in 10 of 16 digits, which the Gram matrix would lose.
TEST(Tall, q_is_orthonormal_where_columns_are_nearly_dependent) {
  auto a = random_matrix<double>(200, 6, 3);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 1; j < a.columns; ++j) a(i, j) = a(i, 0) + 1e-10 * a(i, j);
  expect_qr(a, NamedSharding(make_mesh({device_count()}, {"x"}), P("x", None)), "nearly dependent");
}

TEST(Tall, a_few_split_matrices_of_a_batch_are_factored_together) {
  const int ranks = device_count();
  const std::int64_t m = 12 * ranks + 1;
  const Array a = array(random_values<double>(static_cast<std::size_t>(2 * m * 3), 5), Shape{2, m, 3});
  const Array split = device_put(a, make_mesh({ranks}, {"x"}), P(None, "x"));
  const auto [q, r] = linalg::qr(split);
  const auto wanted = linalg::qr(a);
  EXPECT_LE(item<double>(max(abs(device_put(r, SingleDeviceSharding(devices()[0])) -
                                 device_put(wanted.r, SingleDeviceSharding(devices()[0]))))),
            1e-12);
  EXPECT_LE(item<double>(max(abs(matmul(q, r) - split))), 1e-12);
}

TEST(Tall, gradients_are_those_of_the_whole_matrix) {
  const auto a = random_matrix<double>(41, 4, 7);
  const Array weights = array(random_values<double>(16, 8), Shape{4, 4});
  const auto f = [&](const Array& x) {
    const auto [q, r] = linalg::qr(x);
    const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
    return sum(r * weights) + sum(square(q(slice(0, 4))) * weights) + sum(s * arange(4)) +
           sum(square(vh) * weights);
  };
  const auto split = matrix_of<double>(grad(f)(split_rows(a.array()))),
             whole = matrix_of<double>(grad(f)(a.array()));
  EXPECT_LE(difference(split, whole), 1e-10);
}

TEST(Tall, nan_comes_out_as_nan) {
  auto a = random_matrix<double>(80, 3, 7);
  a(70, 1) = std::numeric_limits<double>::quiet_NaN();
  const auto split = split_rows(a.array());
  for (const double s : to_vector<double>(linalg::svdvals(split))) EXPECT_TRUE(std::isnan(s));
  EXPECT_TRUE(std::isnan(matrix_of<double>(linalg::qr(split).r)(1, 1)));
}

}  // namespace
}  // namespace tessera::test
