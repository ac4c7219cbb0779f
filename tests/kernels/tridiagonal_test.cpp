// Eigenvectors of tridiagonal matrices by divide and conquer: residuals and orthogonality for spectra that
// take its special paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/spectral/rank_one_merge.hpp"
#include "kernels/spectral/secular.hpp"

namespace tessera::kernels {
namespace {

template <class T> class Tridiagonal : public testing::Test {};
using RealTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Tridiagonal, RealTypes);

template <class T>
void expect_solved(const std::vector<T>& diagonal, const std::vector<T>& beside, const std::string& what) {
  const auto n = static_cast<std::int64_t>(diagonal.size());
  std::vector<T> d = diagonal, e = beside, vectors(n * n);
  ASSERT_TRUE(tridiagonal_eigh(n, d.data(), e.data(), vectors.data())) << what;
  EXPECT_TRUE(std::is_sorted(d.begin(), d.end())) << what;
  double norm = 0, residual = 0, skew = 0;
  for (std::int64_t i = 0; i < n; ++i)
    norm = std::max({norm, std::abs(static_cast<double>(diagonal[i])),
                     i + 1 < n ? std::abs(static_cast<double>(beside[i])) : 0.0});
  for (std::int64_t j = 0; j < n; ++j) {
    const T* const v = vectors.data() + j * n;
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = (static_cast<double>(diagonal[i]) - d[j]) * v[i];
      if (i > 0) sum += static_cast<double>(beside[i - 1]) * v[i - 1];
      if (i + 1 < n) sum += static_cast<double>(beside[i]) * v[i + 1];
      residual = std::max(residual, std::abs(sum));
    }
    for (std::int64_t k = 0; k <= j; ++k) {
      double dot = k == j ? -1 : 0;
      for (std::int64_t i = 0; i < n; ++i) dot += static_cast<double>(v[i]) * vectors[k * n + i];
      skew = std::max(skew, std::abs(dot));
    }
  }
  const double limit =
      4 * std::sqrt(static_cast<double>(n)) * static_cast<double>(std::numeric_limits<T>::epsilon());
  EXPECT_LE(residual, limit * norm) << what << ": residual";
  EXPECT_LE(skew, limit) << what << ": orthogonality";
}

TYPED_TEST(Tridiagonal, of_random_elements) {
  using T = TypeParam;
  std::mt19937 bits(3);
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (const std::int64_t n : {1, 2, 63, 64, 65, 130, 257, 391}) {
    std::vector<T> d(n), e(n);
    for (std::int64_t i = 0; i < n; ++i) d[i] = uniform(bits), e[i] = uniform(bits);
    expect_solved(d, e, std::to_string(n) + " random");
  }
}

TYPED_TEST(Tridiagonal, of_spectra_that_are_deflated) {
  using T = TypeParam;
  const std::int64_t n = 300;
  const auto solve = [&](const std::string& what, const std::function<double(double)>& diagonal,
                         const std::function<double(double)>& beside) {
    std::vector<T> d(n), e(n);
    for (std::int64_t i = 0; i < n; ++i)
      d[i] = static_cast<T>(diagonal(static_cast<double>(i))),
      e[i] = static_cast<T>(beside(static_cast<double>(i)));
    expect_solved(d, e, what);
  };
  const auto constant = [](double value) { return [value](double) { return value; }; };
  solve("zeros", constant(0), constant(0));
  solve("identity", constant(1), constant(0));
  solve("a Toeplitz matrix", constant(0.5), constant(0.25));
  solve("negative couplings", constant(0.5), constant(-0.25));
  solve(
      "a diagonal matrix", [](double i) { return std::sin(i); }, constant(0));
  solve(
      "equal blocks", [](double i) { return std::fmod(i, 5); },
      [](double i) { return std::fmod(i, 5) == 4 ? 0.0 : 1.0; });
  solve(
      "Wilkinson's", [](double i) { return std::abs(i - 150) / 150; }, constant(1.0 / 150));
  solve(
      "Wilkinson's, glued", [](double i) { return std::abs(std::fmod(i, 21) - 10) / 10; },
      [](double i) { return std::fmod(i, 21) == 20 ? 1e-9 : 0.1; });
  solve(
      "graded", [](double i) { return std::pow(2.0, -i / 10); },
      [](double i) { return std::pow(2.0, -i / 10 - 1); });
  solve(
      "weak couplings", [](double i) { return 1 + 1e-7 * i; }, constant(1e-6));
}

// The sum at a distance from a pole, in more digits.
template <class T> long double sum_at(const std::vector<T>& poles, const std::vector<T>& weights, T rho,
                                      std::int64_t origin, long double distance) {
  long double sum = 1 / static_cast<long double>(rho);
  for (std::size_t i = 0; i < poles.size(); ++i) {
    const long double w = weights[i], gap = static_cast<long double>(poles[i]) - poles[origin];
    sum += w * w / (gap - distance);
  }
  return sum;
}
// The least sum of absolute values on both sides: what rounding errors are relative to.
template <class T> long double size_at(const std::vector<T>& poles, const std::vector<T>& weights, T rho,
                                       std::int64_t origin, long double distance) {
  long double sum = 1 / static_cast<long double>(rho);
  for (std::size_t i = 0; i < poles.size(); ++i) {
    const long double w = weights[i], gap = static_cast<long double>(poles[i]) - poles[origin];
    sum += std::abs(w * w / (gap - distance)) +
           std::abs(w * w * distance / ((gap - distance) * (gap - distance)));
  }
  return sum;
}

TYPED_TEST(Tridiagonal, roots_of_the_secular_equation) {
  using T = TypeParam;
  std::mt19937 bits(5);
  std::uniform_real_distribution<T> uniform(0, 1);
  const T eps = std::numeric_limits<T>::epsilon();
  std::int64_t found_by_interpolation = 0, all = 0;
  for (const std::int64_t n : {3, 4, 17, 100, 333})
    for (const T rho : {T(1e-4), T(1), T(100)})
      for (int kind = 0; kind < 4; ++kind) {
        std::vector<T> poles(n), weights(n);
        T at = kind == 0 ? T(-1) : T(0), square = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          // Even gaps, clusters, gaps that grow; weights of one size, or of many.
          at += kind == 1 && i % 5 != 0 ? 100 * eps * (1 + uniform(bits))
                                        : (T(0.1) + uniform(bits)) / static_cast<T>(n);
          poles[i] = kind == 3 ? std::pow(T(2), at * 8 - 8) : at;
          weights[i] = kind == 2 ? std::pow(T(10), -4 * uniform(bits)) : T(0.1) + uniform(bits);
          square += weights[i] * weights[i];
        }
        for (T& weight : weights) weight /= std::sqrt(square);
        for (std::int64_t i = 0; i < n; ++i, ++all) {
          const auto root = secular_root(i, poles, weights, rho);
          if (!root) continue;
          ++found_by_interpolation;
          const std::string what =
              std::to_string(n) + ", kind " + std::to_string(kind) + ", root " + std::to_string(i);
          ASSERT_TRUE(root->pole == i || root->pole == i + 1) << what;
          ASSERT_TRUE(root->pole == i ? root->distance > 0 : root->distance < 0) << what;
          if (i + 1 < n) {
            ASSERT_LE(std::abs(root->distance), (poles[i + 1] - poles[i]) * T(0.51)) << what;
          }
          const long double sum = sum_at(poles, weights, rho, root->pole, root->distance),
                            size = size_at(poles, weights, rho, root->pole, root->distance);
          EXPECT_LE(std::abs(sum), 20 * eps * size) << what;
        }
      }
  EXPECT_GE(found_by_interpolation, all * 99 / 100);  // LAPACK's routine finds the others
}

}  // namespace
}  // namespace tessera::kernels
