// Singular values and vectors that ranks compute together in two stages: residuals, orthogonality and LAPACK's
// values for every layout, type and shape, and for the matrices at which reductions and divide and conquer take
// special paths.
#include <tessera/debug.hpp>
#include <tessera/transforms.hpp>

#include "linalg/matrices.hpp"
#include "ops/factor/two_stage/alone.hpp"

namespace tessera::test {
namespace {

constexpr double limit = 20;  // residual / (eps * size * norm)

template <class T> double scaled_eps(const Matrix<T>& a) {
  return limit * eps<T>() * static_cast<double>(std::max<std::int64_t>({a.rows, a.columns, 1}));
}
template <class T> void expect_orthonormal_columns(const Matrix<T>& q, const std::string& what) {
  EXPECT_LE(difference(product(adjoint(q), q), identity<T>(q.columns)), scaled_eps(q)) << what;
}
template <class T>
void expect_svd(const Matrix<T>& a, const Sharding& layout, const std::string& what, bool full = false) {
  const Array placed = device_put(a.array(), layout);
  const auto parts = linalg::svd(placed, {.full_matrices = full});
  const auto u = matrix_of<T>(parts.u), vh = matrix_of<T>(parts.vh);
  const auto s = to_vector<real_part<T>>(parts.s), only = to_vector<real_part<T>>(linalg::svdvals(placed)),
             lapacks = to_vector<real_part<T>>(linalg::svdvals(a.array()));
  const auto k = static_cast<std::size_t>(std::min(a.rows, a.columns));
  ASSERT_EQ(u.columns, full ? a.rows : static_cast<std::int64_t>(k)) << what;
  ASSERT_EQ(vh.rows, full ? a.columns : static_cast<std::int64_t>(k)) << what;
  ASSERT_EQ(s.size(), k) << what;
  const double bound = scaled_eps(a) * std::max(static_cast<double>(lapacks.front()), 1e-300);
  Matrix<T> scaled(a.rows, vh.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::size_t j = 0; j < k; ++j)
      scaled(i, static_cast<std::int64_t>(j)) = u(i, static_cast<std::int64_t>(j)) * s[j];
  EXPECT_LE(difference(product(scaled, vh), a), bound) << what;
  expect_orthonormal_columns(u, what + ": u");
  expect_orthonormal_columns(adjoint(vh), what + ": vh");
  EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend())) << what;
  EXPECT_GE(s.back(), 0) << what;
  for (std::size_t j = 0; j < k; ++j) {
    EXPECT_NEAR(s[j], lapacks[j], bound) << what << ": value " << j;
    EXPECT_NEAR(only[j], lapacks[j], bound) << what << ": value alone " << j;
  }
}

// Shapes and types by rows, and over a sub-mesh or two dims. Only every third combination if ranks share
// cores, every fifth if there are many ranks.
using Shapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
template <class F> void for_cases(const Shapes& shapes, F&& f) {
  const std::size_t step = device_count() > 4 ? 5 : device_count() > 1 ? 3 : 1;
  std::size_t number = 0;
  const auto all = layouts_of_matrices();
  for (const auto& layout : {all.front(), all.back()})
    for (const auto& [m, n] : shapes)
      for_types(AllTypes{}, [&, m = m, n = n](auto zero) {
        if (number++ % step != 0) return;
        f(zero, m, n, layout,
          text_of(layout) + " " + std::to_string(m) + "x" + std::to_string(n) + " " +
              name(dtype_of<decltype(zero)>()));
      });
}

TEST(TwoStageSvd, of_random_matrices_of_any_shape) {
  const factor::Together together;
  bool full = false;
  for_cases({{1, 1}, {1, 4}, {2, 2}, {3, 2}, {9, 9}, {17, 17}, {16, 41}, {75, 75}, {81, 40}, {63, 65}},
            [&](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout, const std::string& what) {
              expect_svd(random_matrix<decltype(zero)>(m, n, 3), layout, what, full = !full);
            });
}

TEST(TwoStageSvd, in_blocks_as_wide_as_the_band_and_more_parts) {
  const factor::Together together;
  const Sharding layout = layouts_of_matrices().front();
  expect_svd(random_matrix<double>(210, 200, 5), layout, "210 x 200");
  expect_svd(random_matrix<std::complex<float>>(131, 140, 6), layout, "131 x 140");
}

TEST(TwoStageSvd, of_several_matrices_at_once) {
  const factor::Together together;
  constexpr std::int64_t count = 3, m = 14, n = 11;
  const int ranks = device_count();
  const Array a = array(random_values<double>(count * m * n, 5), Shape{count, m, n});
  const Array split = device_put(a, make_mesh({ranks}, {"x"}), P(None, "x"));
  const auto parts = linalg::svd(split, {.full_matrices = false});
  const Array back = matmul(parts.u * expand_dims(parts.s, -2), parts.vh);
  EXPECT_LE(item<double>(max(abs(back - split))), 1e-13);
  EXPECT_LE(item<double>(max(abs(linalg::svdvals(split) - parts.s))), 1e-13);
}

// A = Q diag(values) P^H
template <class T, class F> Matrix<T> with_values(std::int64_t m, std::int64_t n, F&& value_of) {
  const std::int64_t k = std::min(m, n);
  const auto q = matrix_of<T>(linalg::qr(random_matrix<T>(m, k, 8).array()).q),
             p = matrix_of<T>(linalg::qr(random_matrix<T>(n, k, 9).array()).q);
  auto scaled = q;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < k; ++j) scaled(i, j) *= T(static_cast<real_part<T>>(value_of(j)));
  return product(scaled, adjoint(p));
}

TEST(TwoStageSvd, of_degenerate_and_graded_values) {
  const factor::Together together;
  for_cases({{37, 37}, {44, 37}}, [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout,
                                     const std::string& what) {
    using T = decltype(zero);
    const auto expect = [&](const char* kind, auto value_of) {
      expect_svd(with_values<T>(m, n, value_of), layout, what + " " + kind);
    };
    expect("repeated", [](std::int64_t) { return 3.0; });
    expect("in threes", [](std::int64_t j) { return 1 + static_cast<double>(j / 3); });
    expect("clustered", [](std::int64_t j) { return 1 + 1e-9 * static_cast<double>(j % 3); });
    expect("graded", [](std::int64_t j) { return std::pow(10.0, -15.0 / 36 * static_cast<double>(j)); });
    expect("steep", [](std::int64_t j) { return std::pow(10.0, -3 * static_cast<double>(j)); });
    expect("of rank 20", [](std::int64_t j) { return j < 20 ? 1.0 + static_cast<double>(j) : 0.0; });
    expect("of rank one", [](std::int64_t j) { return j == 0 ? 1.0 : 0.0; });
  });
}

TEST(TwoStageSvd, of_matrices_with_zeros_and_named_ones) {
  const factor::Together together;
  for_cases({{37, 37}, {30, 37}},
            [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              using R = real_part<T>;
              expect_svd(Matrix<T>(m, n), layout, what + " of zeros", true);
              expect_svd(identity<T>(m, n), layout, what + " identity", true);
              Matrix<T> ones(m, n), hilbert(m, n), shifted(m, n), row(m, n), column(m, n);
              for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < n; ++j) {
                  ones(i, j) = T(1);
                  hilbert(i, j) = T(static_cast<R>(1 / (1.0 + static_cast<double>(i + j))));
                  if (j == i + 1) shifted(i, j) = T(2);
                  if (i == m - 1) row(i, j) = T(1);
                  if (j == n - 1) column(i, j) = T(1);
                }
              expect_svd(ones, layout, what + " ones");
              expect_svd(hilbert, layout, what + " Hilbert's");
              expect_svd(shifted, layout, what + " shift");
              expect_svd(row, layout, what + " one row");
              expect_svd(column, layout, what + " one column");
            });
}

TEST(TwoStageSvd, at_both_ends_of_the_range) {
  const factor::Together together;
  for_cases({{23, 23}, {20, 29}},
            [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const bool is_double = sizeof(real_part<T>) == 8;
              for (const double scale : {is_double ? 1e-300 : 1e-35, is_double ? 1e300 : 1e35}) {
                auto a = random_matrix<T>(m, n, 4);
                for (T& value : a.values) value *= T(static_cast<real_part<T>>(scale));
                const Array placed = device_put(a.array(), layout);
                const auto parts = linalg::svd(placed, {.full_matrices = false});
                const auto s = to_vector<real_part<T>>(parts.s),
                           lapacks = to_vector<real_part<T>>(linalg::svdvals(a.array()));
                for (std::size_t j = 0; j < s.size(); ++j)
                  EXPECT_NEAR(s[j] / scale, lapacks[j] / scale, scaled_eps(a) * 10) << what;
                expect_orthonormal_columns(matrix_of<T>(parts.u), what + ": u");
                expect_orthonormal_columns(adjoint(matrix_of<T>(parts.vh)), what + ": vh");
              }
            });
}

TEST(TwoStageSvd, what_is_not_finite_gives_nan) {
  const factor::Together together;
  for (const double odd :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto a = random_matrix<double>(21, 20, 3);
    a(19, 4) = odd;
    const auto parts = linalg::svd(device_put(a.array(), layouts_of_matrices().front()));
    for (const Array& part : {parts.u, parts.s, parts.vh})
      for (const double value : to_vector<double>(part)) ASSERT_TRUE(std::isnan(value));
  }
}

TEST(TwoStageSvd, receives_what_explain_says) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is sent";
  const factor::Together together;
  for (const auto& [m, n] : Shapes{{75, 75}, {137, 140}}) {
    const Array a = device_put(random_matrix<double>(m, n, 3).array(), layouts_of_matrices().front());
    eval({a});
    const auto about = [&](const char* what, const std::function<std::vector<Array>(const Array&)>& work) {
      eval(work(a));
      const debug::CommStats stats;
      eval(work(a));
      const auto told = static_cast<double>(explain(work, a).bytes());
      const auto received = static_cast<double>(most_of_any_rank(stats.bytes()));
      EXPECT_LE(received, 1.15 * told) << what << " of " << a.shape();
      EXPECT_GE(received, 0.85 * told) << what << " of " << a.shape();
    };
    about("svd", [](const Array& x) {
      const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
      return std::vector{u, s, vh};
    });
    about("svdvals", [](const Array& x) { return std::vector{linalg::svdvals(x)}; });
  }
}

TEST(TwoStageSvd, has_the_gradient_of_one_rank) {
  const auto a = random_matrix<double>(26, 19, 7);
  const Array weights = array(random_values<double>(19 * 19, 8), Shape{19, 19});
  const auto f = [&](const Array& x) {
    const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
    return sum(s * arange(19)) + sum(square(vh) * weights) + sum(square(u(slice(0, 19))) * weights);
  };
  const auto whole = matrix_of<double>(grad(f)(a.array()));
  const factor::Together together;
  const auto split = matrix_of<double>(grad(f)(device_put(a.array(), layouts_of_matrices().front())));
  double largest = 0;
  for (const double value : whole.values) largest = std::max(largest, std::abs(value));
  EXPECT_LE(difference(split, whole), 1e-9 * largest);
}

// Functions built on the SVD, with all ranks together.
TEST(TwoStageSvd, carries_pinv_rank_and_condition) {
  const factor::Together together;
  const auto a =
      with_values<double>(30, 24, [](std::int64_t j) { return j < 17 ? 2.0 + static_cast<double>(j) : 0; });
  const Array placed = device_put(a.array(), layouts_of_matrices().front());
  EXPECT_EQ(item<std::int64_t>(astype(linalg::matrix_rank(placed), int64)), 17);
  const auto inverse = matrix_of<double>(linalg::pinv(placed));
  EXPECT_LE(difference(product(product(a, inverse), a), a), 1e-11);
  EXPECT_NEAR(item<double>(linalg::norm(placed, 2)), 18, 1e-11);
}

}  // namespace
}  // namespace tessera::test
