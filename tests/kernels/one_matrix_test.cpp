// Factorizations of one large matrix, checked by their defining properties.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/factor/lapack.hpp"
#include "kernels/factor/one_matrix.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::random_values;

template <class T> class OneMatrix : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OneMatrix, Types);

template <class T> std::vector<T> product_of(bool transpose_a, bool transpose_b, std::int64_t m,
                                             std::int64_t n, std::int64_t k, const std::vector<T>& a,
                                             const std::vector<T>& b) {
  std::vector<T> c(m * n);
  gemm({dtype_of<T>(),
        m,
        n,
        k,
        {a.data(), transpose_a ? m : k, transpose_a},
        {b.data(), transpose_b ? k : n, transpose_b},
        c.data(),
        n});
  return c;
}

template <class T> double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
  return largest;
}

// (n, n), symmetric, eigenvalues from about n to 3 n.
template <class T> std::vector<T> positive_definite(std::int64_t n) {
  auto a = random_values<T>(n * n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j) a[j * n + i] = a[i * n + j];
    a[i * n + i] = static_cast<T>(2 * n);
  }
  return a;
}

TYPED_TEST(OneMatrix, l_times_its_transpose_is_the_matrix) {
  using T = TypeParam;
  for (const std::int64_t n :
       {std::int64_t{1}, large_matrix - 1, large_matrix, std::int64_t{641}, std::int64_t{1031}}) {
    auto a = positive_definite<T>(n), l = std::vector<T>(n * n, T(7));
    const auto whole = a;
    for (std::int64_t i = 0; i < n; ++i)  // elements above the diagonal are not read
      for (std::int64_t j = i + 1; j < n; ++j) a[i * n + j] = std::numeric_limits<T>::max();
    ASSERT_FALSE(cholesky(dtype_of<T>(), 1, n, a.data(), l.data()).happened());
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i + 1; j < n; ++j) ASSERT_EQ(l[i * n + j], T(0)) << i << ", " << j;
    const double bound = 10.0 * n * std::numeric_limits<T>::epsilon() * 2;
    EXPECT_LT(largest_difference(product_of<T>(false, true, n, n, n, l, l), whole), bound * 2) << n;
  }
}

TYPED_TEST(OneMatrix, the_first_leading_minor_that_is_not_positive_is_named) {
  using T = TypeParam;
  const std::int64_t n = 700;
  for (const std::int64_t at : {0, 127, 128, 500, 699}) {
    auto a = positive_definite<T>(n), l = a;
    a[at * n + at] = T(-1);
    const Breakdown breakdown = cholesky(dtype_of<T>(), 1, n, a.data(), l.data());
    EXPECT_EQ(breakdown.matrix, 0);
    EXPECT_EQ(breakdown.index, at);
  }
}

TYPED_TEST(OneMatrix, q_has_orthonormal_columns_and_q_times_r_is_the_matrix) {
  using T = TypeParam;
  struct Case {
    std::int64_t m, n;
    bool complete;
  };
  for (const auto& [m, n, complete] :
       {Case{640, 640, false}, {700, 513, false}, {700, 513, true}, {515, 700, false}, {611, 611, true}}) {
    const std::int64_t columns = complete ? m : std::min(m, n);
    const auto a = random_values<T>(m * n);
    std::vector<T> q(m * columns), r(columns * n), identity(columns * columns, T(0));
    qr(dtype_of<T>(), 1, m, n, complete, a.data(), q.data(), r.data());
    for (std::int64_t i = 0; i < columns; ++i) {
      identity[i * columns + i] = T(1);
      for (std::int64_t j = 0; j < std::min(i, n); ++j) ASSERT_EQ(r[i * n + j], T(0)) << i << ", " << j;
    }
    const double bound = 5 * std::sqrt(double(m)) * n * std::numeric_limits<T>::epsilon();
    EXPECT_LT(largest_difference(product_of<T>(true, false, columns, columns, m, q, q), identity), bound)
        << m << " x " << n;
    EXPECT_LT(largest_difference(product_of<T>(false, false, m, n, columns, q, r), a), bound)
        << m << " x " << n;
    std::vector<T> r_alone(columns * n);
    qr(dtype_of<T>(), 1, m, n, complete, a.data(), nullptr, r_alone.data());
    EXPECT_EQ(r_alone, r);
  }
}

}  // namespace
}  // namespace tessera::kernels
