#include "kernels/dense/symmetric_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "kernels/threads.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

template <class T> void expect_product(std::int64_t n, std::int64_t k, bool is_first) {
  const std::int64_t ld = (is_first ? n : k) + 3, ldc = n + 5;
  const auto x = testing::random_values<T>((is_first ? k : n) * ld, 1), copy = x;
  const auto before = testing::random_values<T>(n * ldc, 2);
  auto c = before, other = before;
  std::int64_t parts = 0;
  const Beside beside{
      [&](std::int64_t, std::int64_t rows, std::int64_t, std::int64_t columns) { parts += rows * columns; },
      {}};
  const StoredMatrix turned{x.data(), ld, is_first}, plain{x.data(), ld, !is_first};
  const bool is_packed = has_packed_product(dtype_of<T>()) && worth_packing(dtype_of<T>(), n, n, k);
  const bool is_done = symmetric_product({dtype_of<T>(), n, n, k, turned, plain, c.data(), ldc}, beside);
  ASSERT_EQ(is_done, is_packed || threads() == 1) << "BLAS's half is for one thread";
  if (!is_done) return;
  EXPECT_EQ(parts, n * n);
  gemm({dtype_of<T>(), n, n, k, turned, {copy.data(), ld, !is_first}, other.data(), ldc});
  using R = decltype(std::abs(T{}));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      const R error = j >= n || is_packed ? 0 : 20 * std::numeric_limits<R>::epsilon() * static_cast<R>(k);
      ASSERT_LE(std::abs(c[at] - other[at]), error) << n << " " << k << " at " << i << ", " << j;
      if (j < i) {
        ASSERT_EQ(c[at], c[static_cast<std::size_t>(j * ldc + i)]);
      }
    }
}

TEST(symmetric_product, is_that_of_two_matrices) {
  for (const auto& [n, k] :
       {std::pair<std::int64_t, std::int64_t>{128, 32}, {131, 1000}, {1100, 70}, {300, 777}})
    for (const bool is_first : {false, true}) {
      expect_product<float>(n, k, is_first);
      expect_product<double>(n, k, is_first);
      expect_product<std::complex<float>>(n, k, is_first);
      expect_product<std::complex<double>>(n, k, is_first);
    }
}

TEST(symmetric_product, has_the_same_bits_on_any_number_of_threads) {
  for (const int count : {2, 3}) {
    set_threads(count);
    for (const bool is_first : {false, true}) {
      expect_product<double>(311, 900, is_first);
      expect_product<double>(1500, 64, is_first);
    }
    set_threads(1);
  }
}

TEST(symmetric_product, takes_no_other_operands) {
  const auto x = testing::random_values<double>(200 * 200, 1);
  std::vector<double> c(200 * 200);
  const auto is_taken = [&](std::int64_t n, const StoredMatrix& a, const StoredMatrix& b, bool accumulate) {
    return symmetric_product({float64, n, n, 100, a, b, c.data(), 200, accumulate}, {});
  };
  EXPECT_FALSE(is_taken(200, {x.data(), 200}, {x.data(), 200}, false));
  EXPECT_FALSE(is_taken(200, {x.data(), 200}, {x.data(), 200, true}, true));
  EXPECT_FALSE(is_taken(150, {x.data(), 200}, {x.data() + 1, 200, true}, false));
  EXPECT_FALSE(is_taken(20, {x.data(), 200}, {x.data(), 200, true}, false));
}

}  // namespace
}  // namespace tessera::kernels
