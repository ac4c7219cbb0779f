#include "kernels/dense/gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dense/gemm_own.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::Stored;

template <class T> T plus_product(T c, T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(c) +
                          static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return c + a * b;
}

// Matrices inside larger ones, so that the leading dimension differs from the width; the margin must not
// change.
template <class T>
void expect_product(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, bool accumulate) {
  using S = Stored<T>;
  const std::int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 1, ldc = n + 2;
  auto a = testing::stored(testing::random_values<T>((ta ? k : m) * lda + 1, 1)),
       b = testing::stored(testing::random_values<T>((tb ? n : k) * ldb + 1, 2));
  const auto c = testing::stored(testing::random_values<T>(m * ldc, 3));
  if constexpr (std::is_same_v<T, bool>)  // mostly zeros, otherwise every result would be true
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = i % 7 == 0;
  auto out = c;
  gemm({dtype_of<T>(), m, n, k, {a.data(), lda, ta}, {b.data(), ldb, tb}, out.data(), ldc, accumulate});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (j >= n) {
        ASSERT_EQ(out[at], c[at]);
        continue;
      }
      if constexpr (is_inexact(dtype_of<T>())) {
        using Z = std::complex<long double>;
        Z exact = accumulate ? Z(c[at]) : Z(0);
        long double size = std::abs(exact);
        for (std::int64_t l = 0; l < k; ++l) {
          const Z product = Z(a[ta ? l * lda + i : i * lda + l]) * Z(b[tb ? j * ldb + l : l * ldb + j]);
          exact += product;
          size += std::abs(product);
        }
        using R = decltype(std::abs(T{}));
        ASSERT_LE(std::abs(Z(out[at]) - exact),
                  4 * std::sqrt(static_cast<long double>(k + 4)) * std::numeric_limits<R>::epsilon() * size)
            << name(dtype_of<T>()) << " " << m << "x" << n << "x" << k << (ta ? " ta" : "")
            << (tb ? " tb" : "");
      } else {
        T exact = accumulate ? static_cast<T>(c[at]) : T(0);
        for (std::int64_t l = 0; l < k; ++l) {
          const auto x = static_cast<T>(a[ta ? l * lda + i : i * lda + l]),
                     y = static_cast<T>(b[tb ? j * ldb + l : l * ldb + j]);
          if constexpr (std::is_same_v<T, bool>)
            exact = exact || (x && y);
          else
            exact = plus_product(exact, x, y);
        }
        ASSERT_EQ(out[at], static_cast<S>(exact)) << name(dtype_of<T>()) << " " << m << "x" << n << "x" << k
                                                  << (ta ? " ta" : "") << (tb ? " tb" : "");
      }
    }
}

TEST(gemm, every_dtype_transposition_and_shape) {
  const std::vector<std::array<std::int64_t, 3>> extents = {
      {1, 1, 1}, {3, 4, 5}, {17, 1, 33}, {1, 19, 40},    {1, 1, 300},    {33, 65, 20},
      {4, 3, 0}, {0, 3, 4}, {3, 0, 4},   {20, 700, 150}, {129, 31, 257}, {9, 4, 35}};
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const auto& [m, n, k] : extents)
        for (const bool ta : {false, true})
          for (const bool tb : {false, true})
            for (const bool accumulate : {false, true}) expect_product<T>(ta, tb, m, n, k, accumulate);
    });
}

TEST(gemm, old_nans_do_not_survive_in_the_result) {
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{40}}) {
    const std::vector<double> a(100 * 100, 1.0), b(100 * n, 2.0);
    std::vector<double> c(100 * n, NAN);
    gemm({float64, 100, n, 100, {a.data(), 100}, {b.data(), n}, c.data(), n});
    for (const double x : c) ASSERT_EQ(x, 200);
  }
}

// This file is compiled for the baseline, so it has no fused multiply-adds.
template <class C> C plus_rounded_product(C c, C a, C b) {
  return C(c.real() + (a.real() * b.real() - a.imag() * b.imag()),
           c.imag() + (a.real() * b.imag() + a.imag() * b.real()));
}
template <class C> void expect_every_product_and_sum_rounded() {
  const std::int64_t m = 5, n = 37, k = 23;
  const auto a = testing::random_values<C>(m * k, 1), b = testing::random_values<C>(k * n, 2);
  std::vector<C> c(m * n);
  gemm_own(dtype_of<C>(), m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      C exact = 0;
      for (std::int64_t l = 0; l < k; ++l) exact = plus_rounded_product(exact, a[i * k + l], b[l * n + j]);
      ASSERT_EQ(c[i * n + j], exact) << i << ", " << j;
    }
}
TEST(gemm_own, complex_products_have_the_same_bits_on_every_instruction_set) {
  expect_every_product_and_sum_rounded<std::complex<float>>();
  expect_every_product_and_sum_rounded<std::complex<double>>();
}

TEST(gemm_batched, shared_and_separate_operands) {
  const std::int64_t batch = 5, m = 6, n = 7, k = 9;
  const auto a = testing::random_values<double>(batch * m * k, 1),
             b = testing::random_values<double>(batch * k * n, 2);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const std::int64_t stride_a : {std::int64_t{0}, m * k})
        for (const std::int64_t stride_b : {std::int64_t{0}, k * n}) {
          std::vector<double> out(batch * m * n), one(m * n);
          gemm_batched(
              {float64, batch, m, n, k, {a.data(), stride_a, ta}, {b.data(), stride_b, tb}, out.data()});
          for (std::int64_t i = 0; i < batch; ++i) {
            gemm({float64,
                  m,
                  n,
                  k,
                  {a.data() + i * stride_a, ta ? m : k, ta},
                  {b.data() + i * stride_b, tb ? k : n, tb},
                  one.data(),
                  n});
            for (std::int64_t e = 0; e < m * n; ++e) ASSERT_NEAR(out[i * m * n + e], one[e], 1e-13);
          }
        }
}

template <class T> void expect_bits_of_single_products(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t batch = 70;
  auto a = testing::random_values<T>(batch * m * k, 1);
  const auto b = testing::random_values<T>(batch * k * n, 2);
  a[m * k] = std::numeric_limits<double>::infinity();
  a[2 * m * k] = std::numeric_limits<double>::quiet_NaN();
  for (const std::int64_t stride_a : {std::int64_t{0}, m * k})
    for (const std::int64_t stride_b : {std::int64_t{0}, k * n}) {
      if (stride_b == 0 && stride_a != 0) continue;  // one taller product, by BLAS
      std::vector<T> out(batch * m * n + 1, T(3)), one(m * n);
      std::int64_t rows_passed = 0;
      Beside beside;
      beside.last_pass = [&](std::int64_t, std::int64_t rows, std::int64_t, std::int64_t) {
        rows_passed += rows;
      };
      gemm_batched({dtype_of<T>(), batch, m, n, k, {a.data(), stride_a}, {b.data(), stride_b}, out.data()},
                   beside);
      EXPECT_EQ(rows_passed, batch * m);
      EXPECT_EQ(out.back(), T(3));
      for (std::int64_t i = 0; i < batch; ++i) {
        std::ranges::fill(one, T(0));
        gemm_own(dtype_of<T>(), m, n, k, {a.data() + i * stride_a, k, 1}, {b.data() + i * stride_b, n, 1},
                 one.data(), n);
        for (std::int64_t e = 0; e < m * n; ++e)
          ASSERT_TRUE(testing::same<T>(out[i * m * n + e], one[e])) << i << " of " << m << k << n;
      }
    }
}
TEST(gemm_batched, many_small_products_have_the_bits_of_single_ones) {
  for (const std::int64_t n : {1, 2, 3, 4, 5})
    for (const std::int64_t k : {1, 2, 3, 4, 7})
      for (const std::int64_t m : {1, 2, 3, 4, 9}) {
        expect_bits_of_single_products<float>(m, n, k);
        expect_bits_of_single_products<double>(m, n, k);
        expect_bits_of_single_products<std::complex<float>>(m, n, k);
        expect_bits_of_single_products<std::complex<double>>(m, n, k);
      }
}

}  // namespace
}  // namespace tessera::kernels
