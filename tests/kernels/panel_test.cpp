// Products with panels and factorizations of panels, compared with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "kernels/factor/panel_solve.hpp"

namespace tessera::kernels {
namespace {

template <class T> inline constexpr bool complex_value = false;
template <class R> inline constexpr bool complex_value<std::complex<R>> = true;
template <class T> T conjugate(T x) {
  if constexpr (complex_value<T>)
    return std::conj(x);
  else
    return x;
}
template <class T> double eps() {
  return static_cast<double>(std::numeric_limits<decltype(std::abs(T{}))>::epsilon());
}

// Column-major with some unused rows, which must not change.
template <class T> struct Columns {
  Columns(std::int64_t rows, std::int64_t columns, std::int64_t margin = 0, unsigned seed = 0)
      : rows(rows), columns(columns), ld(rows + margin), values(std::max<std::int64_t>(ld * columns, 1)) {
    std::mt19937 bits(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (T& value : values) {
      value = T(static_cast<decltype(std::abs(T{}))>(uniform(bits)));
      if constexpr (complex_value<T>) value += T(0, static_cast<decltype(std::abs(T{}))>(uniform(bits)));
    }
  }
  std::int64_t rows, columns, ld;
  std::vector<T> values;
  T* data() { return values.data(); }
  T& operator()(std::int64_t i, std::int64_t j) { return values[i + j * ld]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return values[i + j * ld]; }
};
template <class T> Columns<T> zeros(std::int64_t rows, std::int64_t columns) {
  Columns<T> result(rows, columns);
  std::fill(result.values.begin(), result.values.end(), T(0));
  return result;
}
template <class T> Columns<T> times(const Columns<T>& a, const Columns<T>& b) {
  auto c = zeros<T>(a.rows, b.columns);
  for (std::int64_t j = 0; j < b.columns; ++j)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t i = 0; i < a.rows; ++i) c(i, j) += a(i, k) * b(k, j);
  return c;
}
template <class T> Columns<T> adjoint(const Columns<T>& a) {
  auto result = zeros<T>(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) result(j, i) = conjugate(a(i, j));
  return result;
}
template <class T> double distance(const Columns<T>& a, const Columns<T>& b) {
  double most = 0;
  for (std::int64_t j = 0; j < a.columns; ++j)
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const double d = static_cast<double>(std::abs(a(i, j) - b(i, j)));
      most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
    }
  return most;
}

template <class T> class Panels : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Panels, Types);

TYPED_TEST(Panels, packed_rows_times_columns_however_these_lie) {
  using T = TypeParam;
  for (const std::int64_t m : {1, 5, 23, 24, 49, 150})
    for (const std::int64_t n : {1, 3, 8, 29})
      for (const std::int64_t k : {1, 7, 70})
        for (const bool by_rows : {false, true}) {
          const Columns<T> a(m, k, 2, 1);
          Columns<T> b(by_rows ? n : k, by_rows ? k : n, 3, 2);
          PackedPanel<T> panel;
          panel.pack(m, k, {a.values.data(), 1, a.ld});
          for (const std::int64_t first : {std::int64_t{0}, m / 3}) {
            const Columns<T> before(m - first, n, 4, 3);
            Columns<T> c = before;
            const Steps<T> steps = by_rows ? Steps<T>{b.data(), b.ld, 1, true} : Steps<T>{b.data(), 1, b.ld};
            panel.subtract_product(first, m - first, n, steps, c.data(), c.ld);
            Columns<T> rest(m - first, k), expected = before;
            for (std::int64_t i = first; i < m; ++i)
              for (std::int64_t l = 0; l < k; ++l) rest(i - first, l) = a(i, l);
            const auto product = times(rest, by_rows ? adjoint(b) : b);
            for (std::int64_t j = 0; j < n; ++j)
              for (std::int64_t i = 0; i < m - first; ++i) expected(i, j) -= product(i, j);
            ASSERT_LE(distance(c, expected), 30 * eps<T>() * static_cast<double>(k))
                << m << "x" << n << "x" << k << " from row " << first;
            for (std::int64_t j = 0; j < n; ++j)
              for (std::int64_t i = m - first; i < c.ld; ++i)
                ASSERT_EQ(c.values[i + j * c.ld], before.values[i + j * c.ld]);
          }
        }
}

TYPED_TEST(Panels, a_trapezoid_has_all_its_elements) {
  using T = TypeParam;
  const std::int64_t m = 130, n = 60, k = 20, diagonal = 10;
  Columns<T> a(m, k, 0, 1), b(k, n, 0, 2), c(m, n, 0, 3), expected = c;
  PackedPanel<T> panel;
  panel.pack(m, k, {a.data(), 1, a.ld});
  panel.subtract_product(0, m, n, {b.data(), 1, b.ld}, c.data(), c.ld, diagonal);
  const auto product = times(a, b);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = diagonal + j; i < m; ++i)
      ASSERT_LE(std::abs(c(i, j) - (expected(i, j) - product(i, j))), 30 * eps<T>() * static_cast<double>(k))
          << i << ", " << j;
}

TYPED_TEST(Panels, deep_products_of_any_orientation) {
  using T = TypeParam;
  for (const std::int64_t m : {1, 30, 200})
    for (const std::int64_t n : {1, 17})
      for (const std::int64_t k : {0, 3, 600})
        for (const bool accumulate : {false, true}) {
          Columns<T> a(k, m, 1, 1), b(k, n, 2, 2), c(m, n, 0, 3);  // a^H b
          const Columns<T> before = c;
          product<T>(m, n, k, T(2), {a.data(), a.ld, 1, true}, {b.data(), 1, b.ld}, accumulate, c.data(),
                     c.ld);
          auto expected = times(adjoint(a), b);
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i)
              expected(i, j) = (accumulate ? before(i, j) : T(0)) + T(2) * expected(i, j);
          ASSERT_LE(distance(c, expected), 60 * eps<T>() * static_cast<double>(k + 1))
              << m << "x" << n << "x" << k;
        }
}

TYPED_TEST(Panels, lu_has_small_factors_and_gives_the_panel_back) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 16, 17, 64, 100})
    for (const std::int64_t m : {n, n + 1, 3 * n + 5}) {
      const Columns<T> given(m, n, 3, 5);
      Columns<T> a = given, permuted = given;
      std::vector<std::int64_t> exchanged(n);
      ASSERT_EQ(lu_panel(m, n, a.data(), a.ld, exchanged.data()), -1);
      exchange_rows(n, permuted.data(), permuted.ld, 0, n, exchanged.data());
      auto l = zeros<T>(m, n), u = zeros<T>(n, n);
      for (std::int64_t j = 0; j < n; ++j) {
        l(j, j) = T(1);
        for (std::int64_t i = 0; i <= j; ++i) u(i, j) = a(i, j);
        for (std::int64_t i = j + 1; i < m; ++i) {
          l(i, j) = a(i, j);
          ASSERT_LE(static_cast<double>(std::abs(l(i, j))), 1.5) << "partial pivoting";
        }
      }
      ASSERT_LE(distance(times(l, u), permuted), 50 * eps<T>() * static_cast<double>(n + 10))
          << m << "x" << n;
    }
}

TYPED_TEST(Panels, lu_names_the_first_zero_pivot) {
  using T = TypeParam;
  for (const std::int64_t bad : {0, 15, 16, 40}) {
    const std::int64_t m = 90, n = 48;
    Columns<T> a(m, n);
    std::fill(a.values.begin(), a.values.end(), T(0));
    for (std::int64_t j = 0; j < n; ++j)
      if (j != bad) a(j, j) = T(1);
    std::vector<std::int64_t> exchanged(n);
    EXPECT_EQ(lu_panel(m, n, a.data(), a.ld, exchanged.data()), bad);
  }
}

TYPED_TEST(Panels, triangular_systems_from_both_sides) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 32, 33, 100})
    for (const std::int64_t many : {1, 9, 70}) {
      Columns<T> l(n, n, 2, 6);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          l(i, j) = i < j ? T(77) : i == j ? T(1) : l(i, j) / T(static_cast<decltype(std::abs(T{}))>(n));
      auto lower = zeros<T>(n, n);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = j; i < n; ++i) lower(i, j) = l(i, j);
      const Columns<T> left(n, many, 1, 7), right(many, n, 1, 8);
      Columns<T> x = left, y = right;
      solve_unit_lower(n, many, l.data(), l.ld, x.data(), x.ld);
      EXPECT_LE(distance(times(lower, x), left), 50 * eps<T>() * static_cast<double>(n)) << n << ", " << many;
      for (std::int64_t j = 0; j < n; ++j) lower(j, j) = l(j, j) = T(2);
      solve_adjoint_right(many, n, l.data(), l.ld, y.data(), y.ld);
      EXPECT_LE(distance(times(y, adjoint(lower)), right), 50 * eps<T>() * static_cast<double>(n))
          << n << ", " << many;
    }
}

TYPED_TEST(Panels, rows_of_a_system_do_not_depend_on_their_position) {
  using T = TypeParam;
  if constexpr (!complex_value<T>)
    for (const std::int64_t n : {1, 7, 30, 64}) {
      const std::int64_t many = 101;
      Columns<T> l(n, n, 2, 6);
      for (std::int64_t j = 0; j < n; ++j) l(j, j) = T(3);
      const Columns<T> given(many, n, 1, 8);
      Columns<T> all = given;
      all(50, n / 2) = std::numeric_limits<T>::quiet_NaN();
      solve_adjoint_right(many, n, l.data(), l.ld, all.data(), all.ld);
      for (const std::int64_t row : {0, 1, 49, 51, 100}) {
        Columns<T> one(1, n);
        for (std::int64_t j = 0; j < n; ++j) one(0, j) = given(row, j);
        solve_transposed_right(1, n, l.data(), l.ld, one.data(), one.ld);
        for (std::int64_t j = 0; j < n; ++j)
          EXPECT_EQ(all(row, j), one(0, j)) << n << ": " << row << ", " << j;
      }
      EXPECT_TRUE(std::isnan(all(50, n - 1))) << n;
    }
}

TYPED_TEST(Panels, qr_is_a_product_of_reflectors) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 16, 20, 64, 90})
    for (const std::int64_t m : {n, n + 3, 4 * n}) {
      const Columns<T> given(m, n, 2, 9);
      Columns<T> a = given, t(n, n), v(m, n);
      qr_panel(m, n, a.data(), a.ld, t.data(), t.ld);
      copy_reflectors(m, n, a.data(), a.ld, v.data(), v.ld);
      auto q_r = zeros<T>(m, n), q = zeros<T>(m, m);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i <= j; ++i) q_r(i, j) = a(i, j);
      for (std::int64_t i = 0; i < m; ++i) q(i, i) = T(1);
      const auto identity = q;
      reflect(m, n, n, v.data(), v.ld, t.data(), t.ld, false, q_r.data(), q_r.ld);
      reflect(m, m, n, v.data(), v.ld, t.data(), t.ld, false, q.data(), q.ld);
      ASSERT_LE(distance(q_r, given), 50 * eps<T>() * static_cast<double>(m)) << m << "x" << n;
      ASSERT_LE(distance(times(adjoint(q), q), identity), 50 * eps<T>() * static_cast<double>(m))
          << m << "x" << n;
      reflect(m, m, n, v.data(), v.ld, t.data(), t.ld, true, q.data(), q.ld);
      ASSERT_LE(distance(q, identity), 50 * eps<T>() * static_cast<double>(m)) << "Q^H Q, " << m << "x" << n;
    }
}

}  // namespace
}  // namespace tessera::kernels
