// lu, cholesky, triangular_solve, qr, eigh, svd and functions built on them: scaled residuals, for every
// layout.
#include "linalg/matrices.hpp"
#include "ops/factor/two_stage/alone.hpp"

namespace tessera::test {
namespace {

constexpr double slates_limit = 50;  // residual / (u * size * norm)

template <class T>
void expect_small(const Matrix<T>& got, const Matrix<T>& wanted, double scale, const std::string& what) {
  const double size = static_cast<double>(std::max<std::int64_t>({got.rows, got.columns, 1}));
  EXPECT_LE(difference(got, wanted), slates_limit * eps<T>() * size * std::max(scale, 1e-300)) << what;
}
template <class T> void expect_orthonormal_columns(const Matrix<T>& q, const std::string& what) {
  expect_small(product(adjoint(q), q), identity<T>(q.columns), 1, what + ": columns are orthonormal");
}

// All layouts, all types; shapes with n smaller than the number of ranks, primes and larger ones.
template <class F> void for_cases(const std::vector<std::pair<std::int64_t, std::int64_t>>& shapes, F&& f) {
  const bool crowded =
      device_count() > 4;  // ranks share cores: fewer combinations, all of them at 1 to 4 ranks
  std::size_t number = 0;
  for (const auto& layout : layouts_of_matrices())
    for (const auto& [m, n] : shapes)
      for_types(AllTypes{}, [&](auto zero) {
        if (crowded && ++number % 5 != 1) return;
        f(zero, m, n, layout,
          text_of(layout) + " " + std::to_string(m) + "x" + std::to_string(n) + " " +
              name(dtype_of<decltype(zero)>()));
      });
}
const std::vector<std::pair<std::int64_t, std::int64_t>> rectangles{{0, 3},   {1, 1},   {2, 5},   {7, 3},
                                                                    {13, 13}, {41, 29}, {29, 41}, {90, 70}};
const std::vector<std::pair<std::int64_t, std::int64_t>> squares{{0, 0}, {1, 1}, {3, 3}, {17, 17}, {70, 70}};

TEST(Factor, lu_multiplies_back_to_a) {
  for_cases(rectangles, [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout,
                           const std::string& what) {
    using T = decltype(zero);
    const auto a = random_matrix<T>(m, n, 3);
    const auto [p, l, u] = linalg::lu(device_put(a.array(), layout));
    EXPECT_EQ(p.dtype(), dtype_of<real_part<T>>()) << what;  // a permutation is real, as SciPy's and JAX's
    expect_small(product(product(matrix_of<T>(astype(p, l.dtype())), matrix_of<T>(l)), matrix_of<T>(u)), a,
                 one_norm(a), what);
  });
}

TEST(Factor, lu_factor_is_lapacks_and_lies_as_a) {
  for_cases(rectangles, [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout,
                           const std::string& what) {
    using T = decltype(zero);
    const auto a = random_matrix<T>(m, n, 3);
    const auto split = linalg::lu_factor(device_put(a.array(), layout)), whole = linalg::lu_factor(a.array());
    EXPECT_EQ(split.lu.sharding(), layout);
    EXPECT_EQ(to_vector<std::int32_t>(split.pivots), to_vector<std::int32_t>(whole.pivots)) << what;
    expect_small(matrix_of<T>(split.lu), matrix_of<T>(whole.lu), one_norm(a) * 100, what);
  });
}

TEST(Factor, lu_of_a_singular_matrix_is_no_error) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const auto [p, l, u] = linalg::lu(device_put(zeros({9, 9}, float64), mesh, P("x", None)));
  EXPECT_EQ(difference(matrix_of<double>(u), Matrix<double>(9, 9)), 0);
  EXPECT_EQ(difference(matrix_of<double>(l), identity<double>(9)), 0);
}

TEST(Factor, lu_solve_solves) {
  for_cases({{13, 13}, {70, 70}},
            [](auto zero, std::int64_t n, std::int64_t, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const auto a = random_matrix<T>(n, n, 3), b = random_matrix<T>(n, 3, 4);
              const auto x = matrix_of<T>(linalg::lu_solve(linalg::lu_factor(device_put(a.array(), layout)),
                                                           device_put(b.array(), layout)));
              expect_small(product(a, x), b, one_norm(a) * std::max(1.0, one_norm(x)), what);
            });
}

TEST(Factor, cholesky_multiplies_back_to_a) {
  for_cases(squares,
            [](auto zero, std::int64_t n, std::int64_t, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const auto a = positive_definite<T>(n, 3);
              auto lower_only = a;  // elements above the diagonal are not read
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = i + 1; j < n; ++j) lower_only(i, j) = T(77);
              const Array l_array = linalg::cholesky(device_put(lower_only.array(), layout));
              EXPECT_EQ(l_array.sharding(), layout);
              const auto l = matrix_of<T>(l_array);
              expect_small(product(l, adjoint(l)), a, one_norm(a), what);
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = i + 1; j < n; ++j) ASSERT_EQ(l(i, j), T(0)) << what;
            });
}

TEST(Factor, cholesky_of_an_indefinite_matrix_names_the_pivot_on_every_rank) {
  auto a = identity<double>(30);
  a(21, 21) = -1;
  for (const auto& layout : layouts_of_matrices()) {
    std::string text;
    try {
      eval({linalg::cholesky(device_put(a.array(), layout))});
    } catch (const LinAlgError& error) {
      text = error.what();
    }
    if (!takes_part(layout)) continue;
    EXPECT_NE(text.find("not positive definite: pivot 21"), std::string::npos) << text;
  }
}

TEST(Factor, cholesky_of_nan_is_nan) {
  for (const auto& layout : layouts_of_matrices()) {
    auto a = identity<double>(20);
    a(3, 1) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(matrix_of<double>(linalg::cholesky(device_put(a.array(), layout)))(19, 19)) ||
                std::isnan(matrix_of<double>(linalg::cholesky(device_put(a.array(), layout)))(3, 3)));
  }
}

TEST(Factor, cholesky_of_many_small_matrices_is_that_of_each) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t n : {1, 5, 16, 17}) {
    std::vector<Array> each;
    for (std::uint32_t i = 0; i < 19; ++i) each.push_back(positive_definite<double>(n, i).array());
    each[3] = where(eye(n, float64) == 1, each[3], nan);  // at n = 1 nothing changes
    each[7] = each[7] * 1e-320;
    const auto factors = to_vector<double>(linalg::cholesky(device_put(stack(each), mesh, P("x"))));
    for (std::size_t i = 0; i < each.size(); ++i) {
      const auto one = to_vector<double>(linalg::cholesky(each[i]));
      for (std::size_t e = 0; e < one.size(); ++e)
        ASSERT_TRUE(std::abs(factors[i * one.size() + e] - one[e]) <= 1e-13 * n ||
                    (std::isnan(factors[i * one.size() + e]) && std::isnan(one[e])))
            << "matrix " << i << ", n = " << n;
    }
    each[11] = -each[11];
    EXPECT_THAT([&] { eval(linalg::cholesky(device_put(stack(each), mesh, P("x")))); },
                testing::ThrowsMessage<LinAlgError>(testing::HasSubstr("11")));
  }
}

TEST(Factor, cholesky_solve_solves) {
  for (const auto& layout : layouts_of_matrices()) {
    const auto a = positive_definite<std::complex<double>>(23, 3),
               b = random_matrix<std::complex<double>>(23, 4, 9);
    const auto x = matrix_of<std::complex<double>>(linalg::cholesky_solve(
        linalg::cholesky(device_put(a.array(), layout)), device_put(b.array(), layout)));
    expect_small(product(a, x), b, one_norm(a) * std::max(1.0, one_norm(x)), text_of(layout));
  }
}

TEST(Factor, triangular_solve_reads_one_triangle_and_transposes) {
  for_cases({{1, 1}, {5, 5}, {37, 37}},
            [](auto zero, std::int64_t n, std::int64_t, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              auto a = random_matrix<T>(n, n, 3);
              for (std::int64_t i = 0; i < n; ++i) a(i, i) += T(static_cast<real_part<T>>(n + 1));
              for (const std::int64_t k : {1, 90})
                for (const bool lower : {false, true})
                  for (const bool transpose : {false, true})
                    for (const bool unit : {false, true}) {
                      auto b = random_matrix<T>(n, k, 4);
                      Matrix<T> triangle(n, n);
                      for (std::int64_t i = 0; i < n; ++i)
                        for (std::int64_t j = 0; j < n; ++j)
                          if (i == j || (i > j) == lower)
                            (transpose ? triangle(j, i) : triangle(i, j)) = i == j && unit ? T(1) : a(i, j);
                      if (unit)  // keep the solution small
                        for (auto* m : {&a, &triangle})
                          for (std::int64_t i = 0; i < n; ++i)
                            for (std::int64_t j = 0; j < n; ++j)
                              if (i != j) (*m)(i, j) /= T(static_cast<real_part<T>>(n));
                      const Array x = linalg::triangular_solve(
                          device_put(a.array(), layout), device_put(b.array(), layout),
                          {.lower = lower, .transpose = transpose, .unit_diagonal = unit});
                      EXPECT_EQ(x.sharding(), layout);
                      expect_small(product(triangle, matrix_of<T>(x)), b, static_cast<double>(2 * n), what);
                    }
            });
}

TEST(Factor, qr_multiplies_back_and_is_householders_whatever_the_layout) {
  auto shapes = rectangles;
  shapes.push_back({400, 9});  // tall enough for one QR per rank
  for_cases(shapes,
            [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const auto a = random_matrix<T>(m, n, 3);
              const auto split = linalg::qr(device_put(a.array(), layout)), whole = linalg::qr(a.array());
              const auto q = matrix_of<T>(split.q), r = matrix_of<T>(split.r);
              EXPECT_EQ(q.columns, std::min(m, n));
              expect_small(product(q, r), a, one_norm(a), what);
              expect_orthonormal_columns(q, what);
              for (std::int64_t i = 0; i < r.rows; ++i)
                for (std::int64_t j = 0; j < std::min(i, r.columns); ++j) ASSERT_EQ(r(i, j), T(0)) << what;
              expect_small(r, matrix_of<T>(whole.r), one_norm(a) * 100, what + ": r as of the whole matrix");
            });
}

TEST(Factor, eigh_diagonalizes) {
  for_cases({{0, 0}, {1, 1}, {3, 3}, {17, 17}, {90, 90}},
            [](auto zero, std::int64_t n, std::int64_t, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const auto a = hermitian<T>(n, 3);
              const auto [w_array, v_array] = linalg::eigh(device_put(a.array(), layout));
              EXPECT_EQ(v_array.sharding(), layout);
              const auto v = matrix_of<T>(v_array);
              const auto w = to_vector<real_part<T>>(w_array);
              auto scaled = v;
              for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t j = 0; j < n; ++j) scaled(i, j) *= w[j];
              expect_small(product(a, v), scaled, one_norm(a), what);
              expect_orthonormal_columns(v, what);
              EXPECT_TRUE(std::is_sorted(w.begin(), w.end()));
              const auto values = to_vector<real_part<T>>(linalg::eigvalsh(device_put(a.array(), layout)));
              for (std::size_t i = 0; i < w.size(); ++i)
                EXPECT_NEAR(values[i], w[i], slates_limit * eps<T>() * static_cast<double>(n) * one_norm(a));
            });
}

TEST(Factor, svd_multiplies_back_full_and_reduced) {
  auto shapes = rectangles;
  shapes.push_back({60, 80});
  for_cases(shapes,
            [](auto zero, std::int64_t m, std::int64_t n, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              const auto a = random_matrix<T>(m, n, 3);
              const std::int64_t k = std::min(m, n);
              for (const bool full : {false, true}) {
                const auto svd = linalg::svd(device_put(a.array(), layout), {.full_matrices = full});
                const auto u = matrix_of<T>(svd.u), vh = matrix_of<T>(svd.vh);
                const auto s = to_vector<real_part<T>>(svd.s);
                EXPECT_EQ(u.columns, full ? m : k);
                EXPECT_EQ(vh.rows, full ? n : k);
                Matrix<T> sigma(u.columns, vh.rows);
                for (std::int64_t i = 0; i < k; ++i) sigma(i, i) = T(s[i]);
                expect_small(product(product(u, sigma), vh), a, one_norm(a), what);
                expect_orthonormal_columns(u, what + " u");
                expect_orthonormal_columns(adjoint(vh), what + " vh");
                EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()));
              }
            });
}

// One rank would factor such small matrices alone, because that is faster; Together makes the ranks share the
// work.
TEST(Factor, spectra_of_matrices_that_ranks_work_on_together) {
  const factor::Together together;
  constexpr std::int64_t m = 29, n = 23;
  for (const auto& layout : {layouts_of_matrices().front()}) {
    const auto a = hermitian<double>(n, 5), b = random_matrix<double>(m, n, 6);
    const Array x = device_put(a.array(), layout), y = device_put(b.array(), layout);
    const auto [w, v] = linalg::eigh(x);
    Matrix<double> lambda(n, n), sigma(n, n);
    const auto values = to_vector<double>(w), only = to_vector<double>(linalg::eigvalsh(x));
    for (std::int64_t i = 0; i < n; ++i) {
      lambda(i, i) = values[i];
      EXPECT_NEAR(values[i], only[i], 1e-11);
    }
    const auto vectors = matrix_of<double>(v);
    expect_small(product(product(vectors, lambda), adjoint(vectors)), a, one_norm(a), "eigh");
    const auto svd = linalg::svd(y, {.full_matrices = false});
    const auto s = to_vector<double>(svd.s), alone = to_vector<double>(linalg::svdvals(b.array()));
    for (std::int64_t i = 0; i < n; ++i) {
      sigma(i, i) = s[i];
      EXPECT_NEAR(s[i], alone[i], 1e-11);
    }
    expect_small(product(product(matrix_of<double>(svd.u), sigma), matrix_of<double>(svd.vh)), b, one_norm(b),
                 "svd");
  }
}

TEST(Factor, svd_of_a_small_split_square_matrix_is_one_ranks_work) {
  const Array split = device_put(random_matrix<double>(130, 130, 7).array(), layouts_of_matrices().back());
  EXPECT_TRUE(factor::is_quicker_alone(512));
  EXPECT_FALSE(factor::is_quicker_alone(1024));
  const auto one = to_vector<double>(linalg::svd(split).s), other = to_vector<double>(linalg::svdvals(split));
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-11);
}

TEST(Factor, spectra_of_nan_are_nan) {
  for (const auto& layout : layouts_of_matrices()) {
    auto a = hermitian<double>(20, 3);
    a(4, 4) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(to_vector<double>(linalg::eigvalsh(device_put(a.array(), layout)))[0]));
    EXPECT_TRUE(std::isnan(to_vector<double>(linalg::svdvals(device_put(a.array(), layout)))[0]));
  }
}

// ---- functions built on them ----

TEST(Factor, inv_det_and_slogdet) {
  for_cases({{1, 1}, {4, 4}, {19, 19}},
            [](auto zero, std::int64_t n, std::int64_t, const Sharding& layout, const std::string& what) {
              using T = decltype(zero);
              auto a = random_matrix<T>(n, n, 3);
              for (std::int64_t i = 0; i < n; ++i) a(i, i) += T(2);
              const Array split = device_put(a.array(), layout);
              const auto inverse = matrix_of<T>(linalg::inv(split));
              expect_small(product(a, inverse), identity<T>(n), one_norm(a) * one_norm(inverse), what);
              // By elimination without LAPACK.
              auto b = a;
              T det(1);
              for (std::int64_t j = 0; j < n; ++j) {
                std::int64_t p = j;
                for (std::int64_t i = j; i < n; ++i)
                  if (std::abs(b(i, j)) > std::abs(b(p, j))) p = i;
                if (p != j) det = -det;
                for (std::int64_t c = 0; c < n; ++c) std::swap(b(j, c), b(p, c));
                det *= b(j, j);
                for (std::int64_t i = j + 1; i < n; ++i)
                  for (std::int64_t c = n; c-- > j;) b(i, c) -= b(i, j) / b(j, j) * b(j, c);
              }
              const double tolerance = 1e4 * eps<T>() * std::abs(det);
              EXPECT_LE(std::abs(item<T>(linalg::det(split)) - det), tolerance) << what;
              const auto [sign, logabsdet] = linalg::slogdet(split);
              EXPECT_LE(std::abs(item<T>(sign) * static_cast<real_part<T>>(std::exp(
                                                     static_cast<double>(item<real_part<T>>(logabsdet)))) -
                                 det),
                        tolerance)
                  << what;
            });
}

TEST(Factor, det_of_a_singular_matrix_is_zero) {
  EXPECT_EQ(item<double>(linalg::det(zeros({3, 3}, float64))), 0);
  const auto [sign, logabsdet] = linalg::slogdet(zeros({3, 3}, float64));
  EXPECT_EQ(item<double>(sign), 0);
  EXPECT_EQ(item<double>(logabsdet), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(item<double>(linalg::det(zeros({0, 0}, float64))), 1);
}

TEST(Factor, lstsq_pinv_and_rank_of_a_matrix_without_full_rank) {
  for (const auto& layout : layouts_of_matrices()) {
    const auto a = product(random_matrix<double>(31, 4, 1), random_matrix<double>(4, 12, 2)),
               b = random_matrix<double>(31, 2, 3);
    const Array split = device_put(a.array(), layout);
    EXPECT_EQ(item<int>(linalg::matrix_rank(split)), 4);
    const auto plus = matrix_of<double>(linalg::pinv(split));
    expect_small(product(product(a, plus), a), a, 100 * one_norm(a), "a a+ a = a");
    expect_small(product(product(plus, a), plus), plus, 100 * one_norm(plus), "a+ a a+ = a+");
    const auto x = matrix_of<double>(linalg::lstsq(split, device_put(b.array(), layout)));
    expect_small(x, product(plus, b), 100 * one_norm(plus), "lstsq = a+ b");
  }
}

TEST(Factor, norms_of_a_known_matrix) {
  const Array a = array({{1.0, -2.0}, {3.0, 4.0}});
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(item<double>(linalg::norm(a)), std::sqrt(30.0));
  EXPECT_DOUBLE_EQ(item<double>(linalg::norm(a, "fro")), std::sqrt(30.0));
  EXPECT_DOUBLE_EQ(item<double>(linalg::norm(a, 1)), 6);
  EXPECT_DOUBLE_EQ(item<double>(linalg::norm(a, inf)), 7);
  EXPECT_DOUBLE_EQ(item<double>(linalg::norm(a, -1)), 4);
  // singular values of [[1, -2], [3, 4]]: s^2 are the roots of s^4 - 30 s^2 + 100
  const double largest = std::sqrt(15 + std::sqrt(125.0)), smallest = std::sqrt(15 - std::sqrt(125.0));
  EXPECT_NEAR(item<double>(linalg::norm(a, 2)), largest, 1e-14);
  EXPECT_NEAR(item<double>(linalg::norm(a, "nuc")), largest + smallest, 1e-14);
  EXPECT_NEAR(item<double>(linalg::cond(a)), largest / smallest, 1e-13);
  EXPECT_NEAR(item<double>(linalg::cond(a, 1)), 6 * 0.7,
              1e-13);  // the inverse is [[4, 2], [-3, 1]] / 10: its columns sum to 0.7 and 0.3
}

TEST(Factor, norm_says_what_is_wrong_with_its_order_or_axes) {
  const auto text_of_norm = [](auto order, Axes axes) -> std::string {
    try {
      linalg::norm(zeros({3, 4, 5}), order, axes);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(text_of_norm(3.0, {0, 1}).find(": 3 is no order of a matrix norm"), std::string::npos);
  EXPECT_NE(text_of_norm(2.0, {1, -2}).find("got axis 1 twice for shape (3, 4, 5)"), std::string::npos);
  EXPECT_NE(text_of_norm("nuc", {1}).find("need two different axes, got 1 for"), std::string::npos);
  EXPECT_NE(text_of_norm(1.0, {}).find("got 3 for shape"), std::string::npos);
}

TEST(Factor, expm_of_matrices_without_rows_is_empty) {
  EXPECT_EQ(linalg::expm(zeros({0, 0})).shape(), (Shape{0, 0}));
  EXPECT_EQ(to_host(linalg::expm(zeros({5, 0, 0}, float64))).shape(), (Shape{5, 0, 0}));
}

TEST(Factor, matrix_power_and_expm) {
  for (const auto& layout : layouts_of_matrices()) {
    const auto a = random_matrix<double>(9, 9, 3);
    const Array split = device_put(a.array(), layout);
    expect_small(matrix_of<double>(linalg::matrix_power(split, 5)),
                 product(a, product(product(a, a), product(a, a))), 1e4, "a^5");
    expect_small(product(matrix_of<double>(linalg::matrix_power(split, -1)), a), identity<double>(9), 1e3,
                 "a^-1");
    expect_small(matrix_of<double>(linalg::matrix_power(split, 0)), identity<double>(9), 0, "a^0");
    auto taylor = identity<double>(9), term = taylor;
    for (int k = 1; k < 60; ++k) {
      term = product(term, a);
      for (double& value : term.values) value /= k;
      for (std::size_t i = 0; i < term.values.size(); ++i) taylor.values[i] += term.values[i];
    }
    expect_small(matrix_of<double>(linalg::expm(split)), taylor, 10 * one_norm(taylor), "expm");
  }
}

}  // namespace
}  // namespace tessera::test
