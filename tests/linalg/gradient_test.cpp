// vjp of every factorization against central differences, in a random direction, whole and split.
#include <tessera/transforms.hpp>

#include "linalg/matrices.hpp"

namespace tessera::test {
namespace {

// Weights the outputs so that none of their entries is indifferent; |.|^2 where signs or phases are
// arbitrary.
Array weigh(const Array& x, unsigned seed) {
  const auto weights = random_values<double>(x.size(), seed);
  const Array w = array(weights, x.shape());
  return is_complex(x.dtype()) ? sum(w * real(x)) + sum((w + 0.3) * imag(x)) : sum(w * x);
}
// A function that does not change when columns (or rows) of x change sign or phase.
Array weigh_squares(const Array& x, unsigned seed) { return weigh(real(x * conj(x)), seed); }

// d/dt f(a + t d) by differences = Re <cotangent, d>: with JAX's convention, without conjugation.
template <class T, class F> void expect_gradient(F f, const Matrix<T>& a, const char* what) {
  const auto d = random_matrix<T>(a.rows, a.columns, 99);
  const double h = 1e-6;
  const auto at = [&](double t) {
    Matrix<T> moved = a;
    for (std::size_t i = 0; i < a.values.size(); ++i) moved.values[i] += T(t) * d.values[i];
    return item<double>(f(moved.array()));
  };
  const double expected = (at(h) - at(-h)) / (2 * h);
  const auto check = [&](const Array& g, const std::string& where) {
    const auto values = to_vector<T>(g);
    double got = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      got += std::real(std::complex<double>(values[i]) * std::complex<double>(d.values[i]));
    EXPECT_NEAR(got, expected, 2e-6 * std::max(1.0, std::abs(expected))) << what << " " << where;
  };
  const auto g = grad(f);
  check(g(a.array()), "whole");
  for (const auto& layout : layouts_of_matrices()) {
    check(g(device_put(a.array(), layout)), text_of(layout));
    if (device_count() > 4) break;
  }
}

template <class T> void check_all() {
  const auto general = random_matrix<T>(5, 5, 1), b = random_matrix<T>(5, 3, 2);
  auto well = general;
  for (std::int64_t i = 0; i < 5; ++i) well(i, i) += T(3);
  const auto tall = random_matrix<T>(7, 4, 4), wide = random_matrix<T>(4, 7, 5),
             positive = positive_definite<T>(5, 6), symmetric = hermitian<T>(5, 7);
  expect_gradient<T>([&](const Array& a) { return weigh(linalg::solve(a, b.array()), 1); }, well,
                     "solve by a");
  expect_gradient<T>([&](const Array& x) { return weigh(linalg::solve(well.array(), x), 1); }, b,
                     "solve by b");
  expect_gradient<T>([&](const Array& a) { return weigh(linalg::inv(a), 1); }, well, "inv");
  expect_gradient<T>([&](const Array& a) { return weigh(linalg::det(a), 1); }, well, "det");
  expect_gradient<T>([&](const Array& a) { return sum(linalg::slogdet(a).logabsdet); }, well, "slogdet");
  for (const auto* a : {&general, &tall, &wide})
    expect_gradient<T>(
        [](const Array& x) {
          const auto [p, l, u] = linalg::lu(x);
          return weigh(l, 1) + weigh(u, 2);
        },
        *a, "lu");
  expect_gradient<T>(
      [&](const Array& a) { return weigh(linalg::lu_solve(linalg::lu_factor(a), b.array()), 1); }, well,
      "lu_solve");
  expect_gradient<T>([](const Array& a) { return weigh(linalg::cholesky(a), 1); }, positive, "cholesky");
  for (const bool lower : {false, true})
    for (const bool transpose : {false, true})
      for (const bool unit : {false, true}) {
        const linalg::TriangularOptions options{lower, transpose, unit};
        expect_gradient<T>(
            [&](const Array& a) { return weigh(linalg::triangular_solve(a, b.array(), options), 1); }, well,
            "triangular_solve by a");
        expect_gradient<T>(
            [&](const Array& x) { return weigh(linalg::triangular_solve(well.array(), x, options), 1); }, b,
            "triangular_solve by b");
      }
  for (const auto* a : {&general, &tall, &wide})
    expect_gradient<T>(
        [](const Array& x) {
          const auto [q, r] = linalg::qr(x);
          return weigh(q, 1) + weigh(r, 2);
        },
        *a, "qr");
  expect_gradient<T>(
      [](const Array& a) {
        const auto [w, v] = linalg::eigh(a);
        return weigh(w, 1) + weigh_squares(v, 2);
      },
      symmetric, "eigh");
  expect_gradient<T>([](const Array& a) { return weigh(linalg::eigvalsh(a), 1); }, symmetric, "eigvalsh");
  for (const auto* a : {&general, &tall, &wide}) {
    expect_gradient<T>(
        [](const Array& x) {
          const auto [u, s, vh] = linalg::svd(x, {.full_matrices = false});
          return weigh_squares(u, 1) + weigh(s, 2) + weigh_squares(vh, 3);
        },
        *a, "svd");
    expect_gradient<T>([](const Array& x) { return weigh(linalg::svdvals(x), 1); }, *a, "svdvals");
    expect_gradient<T>([](const Array& x) { return weigh(linalg::pinv(x), 1); }, *a, "pinv");
    expect_gradient<T>([](const Array& x) { return linalg::norm(x); }, *a, "norm");
  }
  expect_gradient<T>([](const Array& a) { return weigh(linalg::expm(a), 1); }, general, "expm");
  expect_gradient<T>([](const Array& a) { return weigh(linalg::matrix_power(a, 3), 1); }, general,
                     "matrix_power");
}

TEST(Gradient, of_real_matrices_are_finite_differences) { check_all<double>(); }
TEST(Gradient, of_complex_matrices_are_finite_differences) { check_all<std::complex<double>>(); }

TEST(Gradient, of_a_full_svd_that_is_not_square_is_refused) {
  EXPECT_THROW(
      grad([](const Array& a) { return sum(linalg::svd(a).u); })(random_matrix<double>(3, 2).array()),
      ArgumentError);
}

}  // namespace
}  // namespace tessera::test
