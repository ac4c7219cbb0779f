// Spectra that ranks compute together in two stages: residuals and orthogonality for every layout and type, and
// for the spectra at which reductions and divide and conquer take special paths.
#include <tessera/debug.hpp>
#include <tessera/transforms.hpp>

#include "linalg/matrices.hpp"
#include "ops/factor/two_stage/alone.hpp"

namespace tessera::test {
namespace {

constexpr double limit = 20;  // residual / (eps * size * norm)

template <class T> double largest(const Matrix<T>& a) {
  double most = 0;
  for (const T& value : a.values) most = std::max(most, static_cast<double>(std::abs(value)));
  return most;
}
template <class T> void expect_orthonormal(const Matrix<T>& q, const std::string& what) {
  EXPECT_LE(difference(product(adjoint(q), q), identity<T>(q.columns)),
            limit * eps<T>() * static_cast<double>(std::max<std::int64_t>(q.rows, 1)))
      << what;
}
template <class T> void expect_eigh(const Matrix<T>& a, const Sharding& layout, const std::string& what) {
  auto lower = a;  // elements above the diagonal are not read
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = i + 1; j < a.rows; ++j) lower(i, j) = T(77);
  const Array placed = device_put(lower.array(), layout);
  const auto [w_array, v_array] = linalg::eigh(placed);
  EXPECT_EQ(v_array.sharding(), layout);
  const auto v = matrix_of<T>(v_array);
  const auto w = to_vector<real_part<T>>(w_array);
  auto residual = product(a, v);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.rows; ++j) residual(i, j) -= v(i, j) * w[j];
  const double size = static_cast<double>(a.rows), scale = std::max(largest(a), 1e-300);
  const double bound = limit * eps<T>() * size * scale;
  EXPECT_LE(largest(residual), bound) << what;
  expect_orthonormal(v, what);
  EXPECT_TRUE(std::is_sorted(w.begin(), w.end())) << what;
  const auto only = to_vector<real_part<T>>(linalg::eigvalsh(placed));
  for (std::size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(only[i], w[i], bound) << what;
}

// Sizes and types by rows, and over a sub-mesh or two dims: fewer combinations where ranks share cores.
template <class F> void for_cases(const std::vector<std::int64_t>& sizes, F&& f) {
  std::size_t number = 0;
  const auto all = layouts_of_matrices();
  for (const auto& layout : {all.front(), all.back()})
    for (const std::int64_t n : sizes)
      for_types(AllTypes{}, [&](auto zero) {
        if (device_count() > 4 && ++number % 3 != 1) return;
        f(zero, n, layout,
          text_of(layout) + " " + std::to_string(n) + " " + name(dtype_of<decltype(zero)>()));
      });
}

TEST(TwoStage, eigh_of_random_matrices) {
  const factor::Together together;
  for_cases({1, 2, 3, 17, 75},
            [](auto zero, std::int64_t n, const Sharding& layout, const std::string& what) {
              expect_eigh(hermitian<decltype(zero)>(n, 3), layout, what);
            });
}

// A = Q diag(values) Q^H
template <class T, class F> Matrix<T> with_values(std::int64_t n, F&& value_of) {
  const auto q = matrix_of<T>(linalg::qr(random_matrix<T>(n, n, 8).array()).q);
  auto scaled = q;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) scaled(i, j) *= T(static_cast<real_part<T>>(value_of(j)));
  auto a = product(scaled, adjoint(q));
  const auto turned = adjoint(a);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = (a.values[i] + turned.values[i]) * T(0.5);
  return a;
}

TEST(TwoStage, eigh_in_blocks_as_wide_as_the_band_and_more_parts) {
  const factor::Together together;
  const Sharding layout = layouts_of_matrices().front();
  expect_eigh(hermitian<double>(200, 5), layout, "200");
  expect_eigh(hermitian<std::complex<float>>(131, 6), layout, "131");
}

TEST(TwoStage, eigh_receives_what_explain_says) {
  if (device_count() == 1) GTEST_SKIP() << "nothing is sent";
  const factor::Together together;
  for (const std::int64_t n : {75, 137}) {
    const Array a = device_put(hermitian<double>(n, 3).array(), layouts_of_matrices().front());
    eval({a});
    const auto about = [&](const char* what, const std::function<std::vector<Array>(const Array&)>& work) {
      eval(work(a));
      const debug::CommStats stats;
      eval(work(a));
      const auto told = static_cast<double>(explain(work, a).bytes());
      const auto received = static_cast<double>(most_of_any_rank(stats.bytes()));
      EXPECT_LE(received, 1.15 * told) << what << " of " << n;
      EXPECT_GE(received, 0.85 * told) << what << " of " << n;
    };
    about("eigh", [](const Array& x) {
      const auto [w, v] = linalg::eigh(x);
      return std::vector{w, v};
    });
    about("eigvalsh", [](const Array& x) { return std::vector{linalg::eigvalsh(x)}; });
  }
}

TEST(TwoStage, eigh_of_degenerate_and_scaled_spectra) {
  const factor::Together together;
  for_cases({37}, [](auto zero, std::int64_t n, const Sharding& layout, const std::string& what) {
    using T = decltype(zero);
    expect_eigh(Matrix<T>(n, n), layout, what + " of zeros");
    expect_eigh(identity<T>(n), layout, what + " identity");
    auto ones = Matrix<T>(n, n);
    for (T& value : ones.values) value = T(1);
    expect_eigh(ones, layout, what + " of rank one");
    expect_eigh(with_values<T>(n, [](std::int64_t j) { return j % 2 == 0 ? 1.0 : -1.0; }), layout,
                what + " 1, -1");
    expect_eigh(with_values<T>(n, [](std::int64_t j) { return 1 + 1e-9 * static_cast<double>(j % 3); }),
                layout, what + " clustered");
    expect_eigh(with_values<T>(n, [](std::int64_t j) { return std::pow(2.0, -static_cast<double>(j)); }),
                layout, what + " graded");
    Matrix<T> wilkinson(n, n);
    for (std::int64_t i = 0; i < n; ++i) {
      wilkinson(i, i) =
          T(static_cast<real_part<T>>(std::abs(static_cast<double>(i) - 0.5 * static_cast<double>(n - 1))));
      if (i > 0) wilkinson(i, i - 1) = wilkinson(i - 1, i) = T(1);
    }
    expect_eigh(wilkinson, layout, what + " Wilkinson's");
    const bool is_double = sizeof(real_part<T>) == 8;
    for (const double scale : {is_double ? 1e-290 : 1e-30, is_double ? 1e290 : 1e30}) {
      auto a = hermitian<T>(n, 4);
      for (T& value : a.values) value *= T(static_cast<real_part<T>>(scale));
      expect_eigh(a, layout, what + " times " + std::to_string(scale));
    }
  });
}

}  // namespace
}  // namespace tessera::test
