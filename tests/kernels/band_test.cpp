// Bands chased to tridiagonal and bidiagonal matrices, and the products with their reflectors: together they
// give back the band.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/spectral/band_chase.hpp"
#include "kernels/spectral/sweep_product.hpp"

namespace tessera::kernels {
namespace {

// Column-major.
template <class T> struct Square {
  explicit Square(std::int64_t n) : n(n), values(n * n, T(0)) {}
  std::int64_t n;
  std::vector<T> values;
  T& operator()(std::int64_t i, std::int64_t j) { return values[i + j * n]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return values[i + j * n]; }
};
template <class T> Square<T> adjoint(const Square<T>& a) {
  Square<T> result(a.n);
  for (std::int64_t i = 0; i < a.n; ++i)
    for (std::int64_t j = 0; j < a.n; ++j) result(j, i) = conjugate(a(i, j));
  return result;
}
template <class T> Square<T> times(const Square<T>& a, const Square<T>& b) {
  Square<T> c(a.n);
  for (std::int64_t j = 0; j < a.n; ++j)
    for (std::int64_t k = 0; k < a.n; ++k)
      for (std::int64_t i = 0; i < a.n; ++i) c(i, j) += a(i, k) * b(k, j);
  return c;
}
template <class T> void expect_equal(const Square<T>& a, const Square<T>& b, const std::string& what) {
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(a.values[i] - b.values[i])));
  EXPECT_LE(most,
            10 * static_cast<double>(a.n) * static_cast<double>(std::numeric_limits<real_of<T>>::epsilon()))
      << what;
}

template <class T> T random_value(std::mt19937& bits) {
  std::uniform_real_distribution<real_of<T>> uniform(-1, 1);
  if constexpr (complex_type<T>)
    return {uniform(bits), uniform(bits)};
  else
    return uniform(bits);
}

// q := H(0, 0) H(0, 1) ... q, by blocks of so many sweeps; a row above and below, and a column behind, which
// must not change.
template <class T> Square<T> product_of(const BandSweeps& sweeps, std::int64_t group,
                                        const std::vector<T>& values, const std::vector<T>& taus) {
  const std::int64_t n = sweeps.n, ld = n + 2;
  std::vector<T> framed(ld * (n + 1), T(7)), v, t, vt;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) framed[1 + i + j * ld] = T(i == j ? 1 : 0);
  for (std::int64_t first = (sweeps.count() - 1) / group * group; first >= 0 && sweeps.count() > 0;
       first -= group)
    for (std::int64_t step = 0; step < sweeps.steps(first); ++step) {
      const auto block = sweep_block(sweeps, first, group, step);
      v.resize(block.rows * block.columns), vt.resize(v.size()), t.resize(block.columns * block.columns);
      fill_sweep_block(sweeps, first, step, block, values.data() + sweeps.values_before(first),
                       taus.data() + sweeps.taus_before(first), v.data(), t.data());
      product<T>(block.rows, block.columns, block.columns, T(1), {v.data(), 1, block.rows},
                 {t.data(), 1, block.columns}, false, vt.data(), block.rows);
      SweepProduct<T> reflectors;
      reflectors.pack(block.rows, block.columns, sweeps.width, v.data(), vt.data());
      reflectors.apply(n, framed.data() + 1 + block.row, ld);
    }
  Square<T> q(n);
  for (std::int64_t j = 0; j <= n; ++j)
    for (std::int64_t i = 0; i < ld; ++i) {
      const T value = framed[i + j * ld];
      if (j < n && i > 0 && i <= n)
        q(i - 1, j) = value;
      else
        EXPECT_EQ(value, T(7)) << "outside, row " << i - 1 << ", column " << j;
    }
  return q;
}

struct Case {
  std::int64_t n, width, group;
};
// Widths in whole vectors and others, bands as wide as the matrix, blocks of one sweep, short last blocks.
const Case cases[] = {{1, 8, 3},    {2, 8, 3},   {9, 8, 5},    {40, 8, 5},    {41, 8, 8},   {30, 5, 3},
                      {70, 24, 16}, {83, 16, 1}, {50, 72, 24}, {201, 72, 24}, {230, 72, 48}};

template <class T> class Band : public testing::Test {};
using AllTypes = testing::Types<float, double, c32, c64>;
TYPED_TEST_SUITE(Band, AllTypes);

TYPED_TEST(Band, becomes_tridiagonal) {
  using T = TypeParam;
  std::mt19937 bits(1);
  for (const auto [n, width, group] : cases) {
    const std::string what = std::to_string(n) + ", width " + std::to_string(width);
    const BandSweeps sweeps{n, width};
    Square<T> a(n), tridiagonal(n);
    std::vector<T> band(2 * width * (n + columns_beyond), T(0));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j; i < std::min(n, j + width + 1); ++i) {
        a(i, j) = random_value<T>(bits);
        if (i == j) a(i, j) = real_part(a(i, j));
        a(j, i) = conjugate(a(i, j));
        band[2 * width * j + i - j] = a(i, j);
      }
    std::vector<real_of<T>> diagonal(n), beside(n), again(n), beside_again(n);
    std::vector<T> values(sweeps.values_before(sweeps.count())), taus(sweeps.taus_before(sweeps.count()));
    auto copy = band;
    chase_band(sweeps, band.data(), diagonal.data(), beside.data(), values.data(), taus.data());
    chase_band<T>(sweeps, copy.data(), again.data(), beside_again.data(), nullptr, nullptr);
    EXPECT_EQ(diagonal, again) << what;
    EXPECT_EQ(beside, beside_again) << what;
    for (std::int64_t j = 0; j < n; ++j) {
      tridiagonal(j, j) = diagonal[j];
      if (j + 1 < n) tridiagonal(j, j + 1) = tridiagonal(j + 1, j) = beside[j];
    }
    const auto q = product_of(sweeps, group, values, taus);
    expect_equal(times(q, times(tridiagonal, adjoint(q))), a, what);
    Square<T> one(n);
    for (std::int64_t j = 0; j < n; ++j) one(j, j) = T(1);
    expect_equal(times(q, adjoint(q)), one, what);
  }
}

TYPED_TEST(Band, of_an_upper_triangle_becomes_bidiagonal) {
  using T = TypeParam;
  std::mt19937 bits(2);
  for (const auto [n, width, group] : cases) {
    const std::string what = std::to_string(n) + ", width " + std::to_string(width);
    const BandSweeps sweeps{n, width};
    const std::int64_t height = 3 * width - 1;
    Square<T> a(n), bidiagonal(n);
    std::vector<T> band(height * n + looked_at_beyond<T>(height), T(0));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = std::max<std::int64_t>(0, j - width); i <= j; ++i)
        band[height * j + 2 * width - 1 + i - j] = a(i, j) = random_value<T>(bits);
    std::vector<real_of<T>> diagonal(n), beside(n);
    std::vector<T> left(sweeps.values_before(sweeps.count())), left_taus(sweeps.taus_before(sweeps.count())),
        right(left.size()), right_taus(left_taus.size());
    const T corner = chase_upper_band<T>(sweeps, band.data(), diagonal.data(), beside.data(),
                                         {left.data(), left_taus.data()}, {right.data(), right_taus.data()});
    for (std::int64_t j = 0; j < n; ++j) {
      bidiagonal(j, j) = T(diagonal[j]) * (j == 0 ? corner : T(1));
      if (j + 1 < n) bidiagonal(j, j + 1) = beside[j];
    }
    const auto p = product_of(sweeps, group, left, left_taus),
               q = product_of(sweeps, group, right, right_taus);
    expect_equal(times(p, times(bidiagonal, adjoint(q))), a, what);
  }
}

// A matrix that is tridiagonal already has reflectors without effect.
TYPED_TEST(Band, of_a_tridiagonal_matrix_stays) {
  using T = TypeParam;
  const std::int64_t n = 60, width = 16;
  const BandSweeps sweeps{n, width};
  std::vector<T> band(2 * width * (n + columns_beyond), T(0));
  for (std::int64_t j = 0; j < n; ++j)
    band[2 * width * j] = T(static_cast<real_of<T>>(j)), band[2 * width * j + 1] = T(j + 1 < n ? 1 : 0);
  std::vector<real_of<T>> diagonal(n), beside(n);
  chase_band<T>(sweeps, band.data(), diagonal.data(), beside.data(), nullptr, nullptr);
  for (std::int64_t j = 0; j < n; ++j) {
    EXPECT_EQ(diagonal[j], static_cast<real_of<T>>(j));
    EXPECT_EQ(beside[j], j + 1 < n ? 1 : 0);
  }
}

}  // namespace
}  // namespace tessera::kernels
