// NaN, infinities, subnormal numbers and ill-conditioned matrices: the same outcome on every layout, and no
// output of LAPACK's.
#include <gmock/gmock.h>

#include <tessera/transforms.hpp>

#include <functional>
#include <map>

#include "base/session.hpp"
#include "linalg/matrices.hpp"
#include "ops/factor/factor_op.hpp"

namespace tessera::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

// Replicated, and split in all ways.
std::vector<Sharding> all_layouts() {
  auto layouts = layouts_of_matrices();
  layouts.push_back(NamedSharding(make_mesh({device_count()}, {"x"}), P()));
  return layouts;
}
template <class F> std::string text_on_outputs(F&& work) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  work();
  const auto text = testing::internal::GetCapturedStdout();
  return text + testing::internal::GetCapturedStderr();
}
template <class F> std::string linalg_error(F&& work) {
  try {
    work();
  } catch (const LinAlgError& error) {
    return error.what();
  }
  return "no error";
}

using Functions = std::map<std::string, std::function<std::vector<Array>(const Array&)>>;
const Functions& functions() {
  static const Functions all = {
      {"solve",
       [](const Array& a) {
         return std::vector{linalg::solve(a, ones({a.shape()[0], 2}, float64))};
       }},
      {"inv", [](const Array& a) { return std::vector{linalg::inv(a)}; }},
      {"det", [](const Array& a) { return std::vector{linalg::det(a)}; }},
      {"slogdet",
       [](const Array& a) {
         const auto [sign, logarithm] = linalg::slogdet(a);
         return std::vector{sign, logarithm};
       }},
      {"lu_factor", [](const Array& a) { return std::vector{linalg::lu_factor(a).lu}; }},
      {"svd",
       [](const Array& a) {
         const auto [u, s, vh] = linalg::svd(a);
         return std::vector{u, s, vh};
       }},
      {"svdvals", [](const Array& a) { return std::vector{linalg::svdvals(a)}; }},
      {"eigh",
       [](const Array& a) {
         const auto [w, v] = linalg::eigh(a);
         return std::vector{w, v};
       }},
      {"eigvalsh", [](const Array& a) { return std::vector{linalg::eigvalsh(a)}; }},
      {"q of qr", [](const Array& a) { return std::vector{linalg::qr(a).q}; }},
      {"lstsq", [](const Array& a) { return std::vector{linalg::lstsq(a, ones({a.shape()[0]}, float64))}; }},
      {"pinv", [](const Array& a) { return std::vector{linalg::pinv(a)}; }},
      {"rcond", [](const Array& a) { return std::vector{linalg::rcond(a)}; }},
      {"expm", [](const Array& a) { return std::vector{linalg::expm(a)}; }}};
  return all;
}

TEST(UnusualNumbers, a_matrix_that_is_not_finite_gives_nan_throughout_and_lapack_says_nothing) {
  for (const double bad : {nan, -inf})
    for (const auto& layout : all_layouts())
      for (const std::int64_t n : {3, 70}) {
        auto a = identity<double>(n);
        a(n / 2, n / 3) = bad;
        const Array placed = device_put(a.array(), layout);
        for (const auto& [name, function] : functions()) {
          std::vector<double> values;
          const auto text = text_on_outputs([&] {
            for (const Array& result : function(placed)) {
              const auto part = to_vector<double>(result);
              values.insert(values.end(), part.begin(), part.end());
            }
          });
          EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v); }))
              << name << " of " << n << " with " << bad << " on " << text_of(layout);
          EXPECT_EQ(text, "") << name << " of " << n << " with " << bad << " on " << text_of(layout);
        }
      }
}

TEST(UnusualNumbers, triangles_of_nan_keep_their_zeros_and_exchange_no_rows) {
  for (const auto& layout : all_layouts()) {
    auto a = identity<double>(9);
    a(5, 2) = inf;
    const Array placed = device_put(a.array(), layout);
    const auto l = matrix_of<double>(linalg::cholesky(placed)), r = matrix_of<double>(linalg::qr(placed).r);
    for (int i = 0; i < 9; ++i)
      for (int j = 0; j < 9; ++j) {
        EXPECT_TRUE(i >= j ? std::isnan(l(i, j)) : l(i, j) == 0) << text_of(layout);
        EXPECT_TRUE(i <= j ? std::isnan(r(i, j)) : r(i, j) == 0) << text_of(layout);
      }
    EXPECT_THAT(to_vector<std::int32_t>(linalg::lu_factor(placed).pivots),
                testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_EQ(item<std::int32_t>(linalg::matrix_rank(placed)), 0);
  }
}

// The places differ in where a factorization by blocks meets them: the diagonal, a diagonal block, below it.
TEST(UnusualNumbers, cholesky_finds_what_is_not_finite_anywhere_in_its_triangle) {
  constexpr int n = 140;
  for (const auto& layout : all_layouts())
    for (const auto& [row, column] : {std::pair{0, 0}, {139, 139}, {3, 1}, {139, 138}, {139, 0}, {70, 60}})
      for (const double bad : {nan, inf, -inf}) {
        auto a = identity<double>(n);
        a(row, column) = bad;
        a(n / 2, n / 2) = -1;  // NaN is found first
        const auto l = matrix_of<double>(linalg::cholesky(device_put(a.array(), layout)));
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j)
            ASSERT_TRUE(i >= j ? std::isnan(l(i, j)) : l(i, j) == 0)
                << bad << " at " << row << ", " << column << " on " << text_of(layout);
      }
}

TEST(UnusualNumbers, what_stands_above_the_diagonal_of_a_hermitian_matrix_is_not_read) {
  for (const auto& layout : all_layouts())
    for (const std::int64_t n : {12, 70}) {
      auto a = identity<double>(n);
      a(1, n - 1) = nan;
      const Array placed = device_put(a.array(), layout);
      EXPECT_EQ(difference(matrix_of<double>(linalg::cholesky(placed)), identity<double>(n)), 0);
      EXPECT_THAT(to_vector<double>(linalg::eigvalsh(placed)), testing::Each(testing::DoubleNear(1, 1e-14)));
    }
}

TEST(UnusualNumbers, a_right_hand_side_that_is_not_finite_spoils_its_own_column_alone) {
  for (const double bad : {nan, inf})
    for (const auto& layout : all_layouts())
      for (const std::int64_t n : {4, 33}) {
        const auto a = positive_definite<double>(n, 3);
        auto b = random_matrix<double>(n, 3, 5);
        b(n - 1, 1) = bad;
        const Array left = device_put(a.array(), layout), right = device_put(b.array(), layout);
        for (const auto& x :
             {matrix_of<double>(linalg::solve(left, right)), matrix_of<double>(linalg::lstsq(left, right))})
          for (int i = 0; i < n; ++i)
            for (int j = 0; j < 3; ++j)
              EXPECT_EQ(std::isnan(x(i, j)), j == 1) << i << " " << j << " " << text_of(layout);
      }
}

TEST(UnusualNumbers, in_a_batch_the_other_matrices_and_sides_keep_their_solutions) {
  Matrix<double> all(8, 4), sides(8, 2);  // eight systems of 2 x 2
  for (int i = 0; i < 8; ++i) all(i, 0) = 2, all(i, 3) = 4, sides(i, 0) = 1, sides(i, 1) = 1;
  all(2, 1) = nan, sides(5, 1) = inf;
  const auto x =
      to_vector<double>(linalg::solve(reshape(all.array(), {8, 2, 2}), reshape(sides.array(), {8, 2, 1})));
  for (int i = 0; i < 8; ++i) {
    const bool bad = i == 2 || i == 5;
    EXPECT_EQ(std::isnan(x[2 * i]), bad) << i;
    EXPECT_EQ(std::isnan(x[2 * i + 1]), bad) << i;
    if (!bad) {
      EXPECT_EQ(x[2 * i], 0.5);
    }
  }
}

// ---- very small and very large numbers ----

template <class T> void expect_scaled_system(double factor, std::int64_t n, const Sharding& layout) {
  // Integers times a power of two: exact even if the operands are subnormal.
  Matrix<T> a(n, n), x(n, 2);
  std::mt19937 bits(static_cast<unsigned>(n));
  for (auto& v : a.values) v = static_cast<T>(static_cast<int>(bits() % 17) - 8);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) += static_cast<T>(40);
  for (auto& v : x.values) v = static_cast<T>(static_cast<int>(bits() % 9) - 4);
  auto b = product(a, x);
  for (auto& v : a.values) v *= static_cast<T>(factor);
  for (auto& v : b.values) v *= static_cast<T>(factor);
  const Array left = device_put(a.array(), layout), right = device_put(b.array(), layout);
  EXPECT_LT(difference(matrix_of<T>(linalg::solve(left, right)), x), 1e4 * eps<T>())
      << factor << " of " << n << " on " << text_of(layout);
  const auto packed = linalg::lu(left);
  EXPECT_LE(difference(matrix_of<T>(matmul(packed.p, matmul(packed.l, packed.u))), a),
            static_cast<double>(n) * std::max(64 * eps<T>() * 40 * factor,
                                              static_cast<double>(std::numeric_limits<T>::denorm_min())))
      << factor << " of " << n << " on " << text_of(layout);
}

TEST(UnusualNumbers, subnormal_systems_and_very_large_ones_are_solved) {
  for (const auto& layout : all_layouts())
    for (const std::int64_t n : {1, 3, 40}) {
      for (const double factor : {0x1p-1040, 0x1p-1070, 0x1p1010})
        expect_scaled_system<double>(factor, n, layout);
      for (const double factor : {0x1p-140, 0x1p115}) expect_scaled_system<float>(factor, n, layout);
    }
  expect_scaled_system<double>(0x1p-1040, 520, all_layouts().front());
}

TEST(UnusualNumbers, a_matrix_of_1e_310_everywhere_but_on_its_diagonal) {
  for (const auto& layout : all_layouts()) {
    const std::int64_t n = 30;
    Matrix<double> a(n, n), b(n, 1);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) a(i, j) = i == j ? 2e-310 : 1e-310;
      b(i, 0) = 31e-310;
    }
    const Array placed = device_put(a.array(), layout);
    const auto x = to_vector<double>(linalg::solve(placed, device_put(b.array(), layout)));
    EXPECT_THAT(x, testing::Each(testing::DoubleNear(1, 1e-11))) << text_of(layout);
    // det = (n + 1) 1e-310^n
    EXPECT_NEAR(item<double>(linalg::slogdet(placed).logabsdet), std::log(31.0) + 30 * std::log(1e-310),
                1e-9);
    EXPECT_NEAR(to_vector<double>(linalg::svdvals(placed))[0], 31e-310, 1e-320);
    EXPECT_EQ(item<double>(linalg::det(placed)), 0);
  }
}

TEST(UnusualNumbers, a_triangle_of_subnormal_numbers_is_solved) {
  for (const auto& layout : all_layouts()) {
    Matrix<double> a(20, 20), b(20, 1);
    for (int i = 0; i < 20; ++i)
      for (int j = 0; j <= i; ++j) a(i, j) = 0x1p-1050, b(i, 0) += 0x1p-1050;
    const auto lower = linalg::triangular_solve(device_put(a.array(), layout), device_put(b.array(), layout),
                                                {.lower = true});
    EXPECT_THAT(to_vector<double>(lower), testing::Each(1.0)) << text_of(layout);
  }
}

// ---- ill-conditioned matrices ----

Matrix<double> hilbert(std::int64_t n) {
  Matrix<double> a(n, n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) a(i, j) = 1.0 / static_cast<double>(i + j + 1);
  return a;
}
// The number of ranks that warned.
int ranks_that_spoke(const std::string& text) {
  const Array spoke = make_array_from_callback(
      {device_count()}, NamedSharding(make_mesh({device_count()}, {"x"}), P("x")),
      [&](const Index&) { return HostArray(std::vector<int>{text.empty() ? 0 : 1}, Shape{1}); });
  return item<int>(sum(spoke));
}

TEST(Condition, solve_warns_once_where_no_digit_need_be_right) {
  for (const auto& layout : all_layouts()) {
    state<factor::ConditionWarning>() = {};
    const Array a = device_put(hilbert(14).array(), layout), b = ones({14}, float64);
    const auto first = text_on_outputs([&] { eval({linalg::solve(a, b)}); });
    const auto second = text_on_outputs([&] { eval({linalg::solve(a, b)}); });
    EXPECT_EQ(second, "");
    if (!first.empty()) {
      EXPECT_THAT(first,
                  testing::AllOf(testing::HasSubstr("solve: the matrix is singular to working precision"),
                                 testing::HasSubstr("below the rounding unit 2e-16 of float64")));
    }
    const int speakers = ranks_that_spoke(first);  // one of those that hold the matrix together
    EXPECT_GE(speakers, 1) << text_of(layout);
    EXPECT_LE(speakers, std::max(1, device_count() / 2)) << text_of(layout);
  }
}

TEST(Condition, solve_refuses_such_a_matrix_where_that_is_asked_for) {
  for (const auto& layout : all_layouts())
    for (const auto& [n, k] : {std::pair{14, 1}, {14, 40}, {12, 1}}) {
      const Array x =
          linalg::solve(device_put(hilbert(n).array(), layout), device_put(ones({n, k}, float64), layout),
                        {.ill_conditioned = linalg::IllConditioned::refuse});
      const std::string text = linalg_error([&] { eval({x}); });
      if (!takes_part(layout)) continue;
      EXPECT_THAT(text, testing::HasSubstr("singular to working precision")) << text_of(layout);
    }
}

TEST(Condition, the_matrix_of_a_batch_is_named) {
  const Matrix<double> bad = hilbert(14), good = positive_definite<double>(14, 1);
  const Array batch = stack({good.array(), good.array(), good.array(), bad.array(), good.array()});
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const auto& spec : {P(), P("x"), P(None, "x")})
    EXPECT_THAT(linalg_error([&] {
                  eval({linalg::solve(device_put(batch, mesh, spec), ones({5, 14, 1}, float64),
                                      {.ill_conditioned = linalg::IllConditioned::refuse})});
                }),
                testing::HasSubstr("matrix (3) of the batch is singular to working precision"));
}

TEST(Condition, healthy_matrices_and_what_nobody_asks_about_are_solved_in_silence) {
  for (const auto& layout : all_layouts()) {
    state<factor::ConditionWarning>() = {};
    const auto text = text_on_outputs([&] {
      for (const std::int64_t n : {1, 2, 10, 100}) {
        const Array b = ones({n}, float64);
        eval({linalg::solve(device_put(random_matrix<double>(n, n, 7).array(), layout), b)});
        const Array singles = device_put(random_matrix<float>(n, n, 7).array(), layout);
        eval({linalg::solve(singles, ones({n}), {.ill_conditioned = linalg::IllConditioned::refuse})});
        eval({linalg::solve(device_put(hilbert(14).array(), layout), ones({14}, float64),
                            {.ill_conditioned = linalg::IllConditioned::accept})});
      }
    });
    EXPECT_EQ(text, "") << text_of(layout);
  }
}

TEST(Condition, a_random_float32_system_of_a_thousand_is_healthy) {
  const std::int64_t n = 1000;  // n * epsilon would be above its rcond
  const Array a = random_matrix<float>(n, n, 7).array(), b = ones({n});
  EXPECT_LT(item<float>(linalg::rcond(a)), static_cast<float>(n) * eps<float>());
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  for (const auto& spec : {P(), P("x")})
    EXPECT_NO_THROW(eval(
        {linalg::solve(device_put(a, mesh, spec), b, {.ill_conditioned = linalg::IllConditioned::refuse})}))
        << text_of(NamedSharding(mesh, spec));
}

TEST(Condition, a_gradient_of_solve_warns_no_more_than_solve) {
  state<factor::ConditionWarning>() = {};
  const auto text = text_on_outputs([&] {
    const auto f = grad([](const Array& a) {
      return sum(linalg::solve(a, ones({14}, float64), {.ill_conditioned = linalg::IllConditioned::accept}));
    });
    eval({f(hilbert(14).array())});
  });
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace tessera::test
