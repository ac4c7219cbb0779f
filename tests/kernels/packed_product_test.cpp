#include "kernels/dense/packed_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

// Row-major, or column-major, with unused columns.
template <class T> struct Operand {
  Operand(std::int64_t rows, std::int64_t columns, bool turned, unsigned seed)
      : ld((turned ? rows : columns) + 3),
        turned(turned),
        values(testing::random_values<T>((turned ? columns : rows) * ld + 1, seed)) {}
  MatrixView view() const { return {values.data(), turned ? 1 : ld, turned ? ld : 1}; }
  T operator()(std::int64_t i, std::int64_t j) const { return values[turned ? j * ld + i : i * ld + j]; }
  std::int64_t ld;
  bool turned;
  std::vector<T> values;
};

struct Extents {
  std::int64_t m, n, k;
};
// Full and partial tiles, several blocks of each dim and partial blocks.
const Extents all_extents[] = {{1, 1, 1},     {8, 48, 16},     {9, 49, 17},  {7, 23, 5},     {64, 96, 384},
                               {65, 97, 385}, {130, 301, 770}, {3, 500, 40}, {2051, 26, 33}, {100, 1, 400}};

template <class T> void expect_product(const Extents& e, bool ta, bool tb, bool accumulate) {
  const Operand<T> a(e.m, e.k, ta, 1), b(e.k, e.n, tb, 2);
  const std::int64_t ldc = e.n + 5;
  const auto before = testing::random_values<T>(e.m * ldc, 3);
  auto c = before;
  packed_product({dtype_of<T>(), e.m, e.n, e.k, a.view(), b.view(), accumulate, c.data(), ldc});
  for (std::int64_t i = 0; i < e.m; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (j >= e.n) {
        ASSERT_EQ(c[at], before[at]) << "beside the result";
        continue;
      }
      long double exact = accumulate ? before[at] : T(0), size = std::abs(exact);
      for (std::int64_t l = 0; l < e.k; ++l) {
        const long double product = static_cast<long double>(a(i, l)) * static_cast<long double>(b(l, j));
        exact += product, size += std::abs(product);
      }
      ASSERT_LE(std::abs(c[at] - exact),
                4 * std::sqrt(static_cast<long double>(e.k + 4)) * std::numeric_limits<T>::epsilon() * size)
          << e.m << "x" << e.n << "x" << e.k << (ta ? " ta" : "") << (tb ? " tb" : "") << " at " << i << ", "
          << j;
    }
}

TEST(packed_product, every_shape_layout_and_type) {
  for (const auto& extents : all_extents)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool accumulate : {false, true}) {
          expect_product<float>(extents, ta, tb, accumulate);
          expect_product<double>(extents, ta, tb, accumulate);
        }
}

TEST(packed_product, old_nans_do_not_survive) {
  const std::vector<double> a(70 * 400, 1.0), b(400 * 50, 2.0);
  std::vector<double> c(70 * 50, NAN);
  packed_product({float64, 70, 50, 400, {a.data(), 400, 1}, {b.data(), 50, 1}, false, c.data(), 50});
  for (const double x : c) ASSERT_EQ(x, 800);
}

// Ranks that compute an array in other blocks must get the same bits.
TEST(packed_product, an_element_does_not_depend_on_where_it_is) {
  const std::int64_t m = 140, n = 333, k = 777;
  const Operand<float> a(m, k, false, 1), b(k, n, true, 2);
  std::vector<float> whole(m * n), part(m * n);
  packed_product({float32, m, n, k, a.view(), b.view(), false, whole.data(), n});
  for (std::int64_t i = 0; i < m; i += 37)
    for (std::int64_t j = 0; j < n; j += 101)
      packed_product({float32,
                      std::min<std::int64_t>(37, m - i),
                      std::min<std::int64_t>(101, n - j),
                      k,
                      {&a.values[i * a.ld], a.ld, 1},
                      {&b.values[j * b.ld], 1, b.ld},
                      false,
                      part.data() + i * n + j,
                      n});
  EXPECT_EQ(std::memcmp(whole.data(), part.data(), whole.size() * sizeof(float)), 0);
}

// last_pass gets every element exactly once, with its final value.
TEST(gemm, the_last_pass_sees_every_element_once_and_complete) {
  for (const Dtype dtype : {float32, float64, int32}) {
    visit(dtype, [&]<class T>(T) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t>)
        for (const auto& e : {Extents{5, 7, 3}, Extents{300, 201, 800}, Extents{200, 64, 0}}) {
          const std::int64_t m = e.m, n = e.n,
                             k = e.k;  // clang 16 captures no structured bindings under OpenMP
          std::vector<T> a(m * k, T(1)), b(k * n, T(2)), c(m * n, T(-7));
          std::int64_t calls = 0;
          Beside beside;
          beside.last_pass = [&](std::int64_t row, std::int64_t rows, std::int64_t column,
                                 std::int64_t columns) {
            for (std::int64_t i = row; i < row + rows; ++i)
              for (std::int64_t j = column; j < column + columns; ++j) {
                ASSERT_EQ(c[i * n + j], T(2 * k)) << i << ", " << j;
                c[i * n + j] += T(1);
              }
          };
          beside.meanwhile = [&] { ++calls; };
          gemm({dtype, m, n, k, {a.data(), k}, {b.data(), n}, c.data(), n}, beside);
          for (const T x : c) ASSERT_EQ(x, T(2 * k + 1));
          EXPECT_GT(calls, 0);
        }
    });
  }
}

TEST(gemm_batched, the_last_pass_sees_one_tall_matrix) {
  const std::int64_t batch = 3, m = 120, n = 130, k = 140;
  const auto a = testing::random_values<double>(batch * m * k, 1),
             b = testing::random_values<double>(batch * k * n, 2);
  std::vector<double> plain(batch * m * n), passed(batch * m * n);
  const auto into = [&](std::vector<double>& c) -> BatchedProduct {
    return {float64, batch, m, n, k, {a.data(), m * k}, {b.data(), k * n}, c.data()};
  };
  gemm_batched(into(plain));
  Beside beside;
  beside.last_pass = [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j)
        passed[i * n + j] += static_cast<double>(1000 * (i + 1));
  };
  gemm_batched(into(passed), beside);
  for (std::int64_t i = 0; i < batch * m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      ASSERT_EQ(passed[i * n + j], plain[i * n + j] + static_cast<double>(1000 * (i + 1))) << i << ", " << j;
}

}  // namespace
}  // namespace tessera::kernels
