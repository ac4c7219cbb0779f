// QR by chunks of rows, checked by its defining properties and beside LAPACK's QR of the same matrix.
#include "kernels/factor/tall_qr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/threads.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

template <class T> class TallQr : public ::testing::Test {};
using Types = ::testing::Types<float, double, c32, c64>;
TYPED_TEST_SUITE(TallQr, Types);

// Column-major (m, n) with columns ld apart.
template <class T> struct Columns {
  std::int64_t m, n, ld;
  std::vector<T> values;
  T& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i + j * ld)]; }
};
template <class T> Columns<T> sample(std::int64_t m, std::int64_t n) {
  return {m, n, m + 3, testing::random_values<T>((m + 3) * n)};
}

// The largest element of q^H q - 1.
template <class T> double distance_from_identity(Columns<T>& q) {
  double largest = 0;
  for (std::int64_t i = 0; i < q.n; ++i)
    for (std::int64_t j = 0; j < q.n; ++j) {
      c64 sum = i == j ? -1 : 0;
      for (std::int64_t k = 0; k < q.m; ++k) sum += std::conj(c64(q.at(k, i))) * c64(q.at(k, j));
      largest = std::max(largest, std::abs(sum));
    }
  return largest;
}
// The largest element of q r - a.
template <class T> double distance_of_product(Columns<T>& q, const std::vector<T>& r, Columns<T>& a) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.m; ++i)
    for (std::int64_t j = 0; j < a.n; ++j) {
      c64 sum = -c64(a.at(i, j));
      for (std::int64_t k = 0; k <= j; ++k) sum += c64(q.at(i, k)) * c64(r[k + j * a.n]);
      largest = std::max(largest, std::abs(sum));
    }
  return largest;
}

TYPED_TEST(TallQr, q_is_orthonormal_and_q_r_is_the_matrix) {
  using T = TypeParam;
  const double eps = std::numeric_limits<real_of<T>>::epsilon();
  for (const auto& [m, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{9001, 33}, {300001, 1}, {2049, 128}, {40, 7}}) {
    auto a = sample<T>(m, n), q = a;
    std::vector<T> r(n * n, T(5));
    chunked_qr(m, n, q.values.data(), q.ld, r.data(), true);
    EXPECT_LT(distance_from_identity(q), eps * std::max(100.0, std::sqrt(double(m)) / 2))
        << m;  // sums of m terms
    EXPECT_LT(distance_of_product(q, r, a), 10 * eps * std::sqrt(double(m * n))) << m;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j + 1; i < n; ++i) EXPECT_EQ(r[i + j * n], T(0));
    for (std::int64_t j = 0; j < n; ++j)  // what lies between columns stays
      EXPECT_EQ(q.at(m, j), a.at(m, j));
  }
}

TYPED_TEST(TallQr, has_the_signs_of_lapack) {
  using T = TypeParam;
  const std::int64_t m = 9001, n = 20;
  ASSERT_TRUE(goes_by_chunks(200000, n, sizeof(T)));
  auto a = sample<T>(m, n), q = a, whole = a;
  std::vector<T> r(n * n), tau(n), work(64 * n);
  chunked_qr(m, n, q.values.data(), q.ld, r.data(), true);
  with_householder_signs(m, n, q.values.data(), q.ld, r.data());
  lapack::geqrf(int(m), int(n), whole.values.data(), int(whole.ld), tau.data(), work.data(),
                int(work.size()));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i <= j; ++i)
      EXPECT_LT(std::abs(r[i + j * n] - whole.at(i, j)),
                1000 * std::numeric_limits<real_of<T>>::epsilon() * 100);
}

TYPED_TEST(TallQr, without_vectors_the_triangle_is_the_same_and_columns_of_zeros_pass) {
  using T = TypeParam;
  const std::int64_t m = 20000, n = 6;
  auto a = sample<T>(m, n);
  for (std::int64_t i = 0; i < m; ++i) a.at(i, 2) = T(0), a.at(i, 4) = a.at(i, 1);
  auto q = a, scratch = a;
  std::vector<T> r(n * n), alone(n * n);
  chunked_qr(m, n, q.values.data(), q.ld, r.data(), true);
  chunked_qr(m, n, scratch.values.data(), scratch.ld, alone.data(), false);
  EXPECT_EQ(r, alone);
  EXPECT_LT(distance_of_product(q, r, a), 1e4 * std::numeric_limits<real_of<T>>::epsilon());
  EXPECT_LT(distance_from_identity(q), 100 * std::numeric_limits<real_of<T>>::epsilon());
}

}  // namespace
}  // namespace tessera::kernels
