// Nonsymmetric matrices, square roots, and functions built from vectors and blocks.
#include <tessera/linalg.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;
using c64 = std::complex<double>;

Mesh line() { return make_mesh({device_count()}, {"x"}); }
Array sample(std::int64_t m, std::int64_t n) {
  return reshape(sin(astype(arange(m * n), float64) * 1.7) + cos(astype(arange(m * n), float64) * 0.31),
                 {m, n});
}
std::vector<Array> layouts_of(const Array& x) {
  return {x, device_put(x, line(), P("x")), device_put(x, line(), P(None, "x"))};
}
Array adjoint(const Array& x) { return conj(swapaxes(x, -1, -2)); }

TEST(Nonsymmetric, eigenvectors_are_scaled_by_their_values) {
  for (const auto& a : layouts_of(sample(7, 7))) {
    const auto [w, v] = linalg::eig(a);
    expect_close(matmul(astype(a, complex128), v), v * expand_dims(w, 0));
    expect_close(linalg::eigvals(a), w);
  }
}

// numpy.linalg.eigvals([[0, 1], [-2, 3]]) is [1, 2]; for a rotation by 90 degrees it is +-i.
TEST(Nonsymmetric, known_eigenvalues) {
  auto two = to_vector<c64>(linalg::eigvals(array<double>({{0, 1}, {-2, 3}})));
  std::sort(two.begin(), two.end(), [](c64 a, c64 b) { return a.real() < b.real(); });
  EXPECT_NEAR(std::abs(two[0] - 1.0) + std::abs(two[1] - 2.0), 0, 1e-13);
  auto turn = to_vector<c64>(linalg::eigvals(array<double>({{0, -1}, {1, 0}})));
  std::sort(turn.begin(), turn.end(), [](c64 a, c64 b) { return a.imag() < b.imag(); });
  EXPECT_NEAR(std::abs(turn[0] + c64(0, 1)) + std::abs(turn[1] - c64(0, 1)), 0, 1e-14);
}

TEST(Nonsymmetric, complex_eigenvalues_of_real_matrices_come_in_exact_pairs) {
  for (const auto& a : layouts_of(roll(eye(9, float64), 1, 0) + 0.01 * sample(9, 9))) {
    auto w = to_vector<c64>(linalg::eigvals(a));
    const auto has_partner = [&](c64 x) { return std::count(w.begin(), w.end(), std::conj(x)) == 1; };
    EXPECT_TRUE(std::all_of(w.begin(), w.end(), has_partner));
    EXPECT_TRUE(std::any_of(w.begin(), w.end(), [](c64 x) { return x.imag() > 0.1; }));
  }
}

// The tangent of w along da must be the change of w by a small step.
TEST(Nonsymmetric, eigenvalues_have_tangents_and_vectors_say_that_they_have_none) {
  const Array a = sample(6, 6) + eye(6, float64) * astype(arange(6) * 2, float64), along = cos(a * 3.0);
  const auto values = [](const Array& x) { return linalg::eig(x).w; };
  const double h = 1e-6;
  const Array moved = (values(a + along * h) - values(a - along * h)) / (2 * h);
  for (const auto& x : layouts_of(a)) {
    expect_close(jvp(values, std::tuple{x}, std::tuple{along}).second, moved, 1e-7);
    const auto vectors = [](const Array& y) { return linalg::eig(y).v; };
    EXPECT_THAT(error_of<ArgumentError>([&] { jvp(vectors, std::tuple{x}, std::tuple{along}); }),
                HasSubstr("eigenvectors have no derivative"));
  }
}

TEST(Nonsymmetric, batches_stay_where_they_are) {
  const Array batch = device_put(reshape(sample(9, 5 * 5), {9, 5, 5}), line(), P("x"));
  const auto [w, v] = linalg::eig(batch);
  EXPECT_EQ(w.sharding(), batch.sharding());
  expect_close(matmul(astype(batch, complex128), v), v * expand_dims(w, 1));
}

TEST(Nonsymmetric, schur_forms_are_triangular_and_give_back) {
  for (const auto& a : layouts_of(sample(6, 6))) {
    const auto [t, z] = linalg::schur(a);
    expect_close(matmul(matmul(z, t), transpose(z)), a);
    expect_close(matmul(transpose(z), z), eye(6, float64));
    expect_close(tril(t, -2), zeros({6, 6}, float64));
  }
  const Array a = sample(5, 5) + c64(0, 1) * transpose(sample(5, 5));
  const auto [t, z] = linalg::schur(a);
  expect_close(matmul(matmul(z, t), adjoint(z)), a);
  expect_close(tril(t, -1), zeros({5, 5}, complex128));
}

TEST(Nonsymmetric, square_roots_squared) {
  const Array b = sample(6, 6);
  const Array a = matmul(b, transpose(b)) + 0.5 * eye(6, float64) + 0.3 * triu(b, 1);
  for (const auto& placed : layouts_of(a)) {
    const Array root = linalg::sqrtm(placed);
    expect_close(matmul(root, root), a, 1e-9);
  }
  expect_close(linalg::sqrtm(array<double>({{4, 0}, {0, 9}})), array<double>({{2, 0}, {0, 3}}));
}

TEST(Nonsymmetric, polar_factors_are_orthonormal_and_positive) {
  for (const auto& a : layouts_of(sample(8, 5))) {
    const auto [u, p] = linalg::polar(a);
    expect_close(matmul(u, p), a);
    expect_close(matmul(transpose(u), u), eye(5, float64));
    EXPECT_GE(item<double>(min(linalg::eigvalsh(p))), -1e-12);
  }
}

TEST(Nonsymmetric, generalized_eigenvalues) {
  const Array x = sample(6, 6), a = x + transpose(x), b = matmul(x, transpose(x)) + eye(6, float64);
  for (const auto& placed : layouts_of(a)) {
    const auto [w, v] = linalg::eigh(placed, b);
    expect_close(matmul(a, v), matmul(b, v) * w, 1e-9);
    expect_close(matmul(matmul(transpose(v), b), v), eye(6, float64), 1e-9);
  }
}

TEST(Nonsymmetric, complete_and_pivoted_qr) {
  for (const auto& a : layouts_of(sample(7, 4))) {
    const auto [q, r] = linalg::qr(a, {.complete = true});
    EXPECT_EQ(q.shape(), (Shape{7, 7}));
    expect_close(matmul(q, r), a);
    expect_close(matmul(transpose(q), q), eye(7, float64));
    const auto [pq, pr, columns] = linalg::qr_pivoted(a);
    expect_close(matmul(pq, pr), take(a, columns, 1));
    const auto diagonal = to_vector<double>(abs(tessera::diagonal(pr)));
    EXPECT_TRUE(std::is_sorted(diagonal.rbegin(), diagonal.rend()));
  }
}

TEST(Derivatives, of_a_full_svd_that_is_not_square_are_refused) {
  EXPECT_THROW(grad([](const Array& a) { return sum(linalg::svd(a).u); })(sample(3, 2)), ArgumentError);
}

TEST(Structured, errors_name_the_shapes) {
  EXPECT_THAT(error_of<ShapeError>([] { (void)linalg::eigvals(sample(3, 4)); }), HasSubstr("(3, 4)"));
  EXPECT_THAT(error_of<ShapeError>([] { (void)linalg::polar(sample(3, 4)); }),
              HasSubstr("as many rows as columns"));
  EXPECT_THAT(error_of<ShapeError>([] { (void)linalg::tensorsolve(sample(3, 4), sample(3, 1)); }),
              HasSubstr("b's dims in front"));
  EXPECT_THAT(error_of<ShapeError>([] { (void)linalg::toeplitz(sample(3, 4)); }),
              HasSubstr("must be a vector"));
  EXPECT_THAT(error_of<ArgumentError>([] { (void)linalg::block_diag({}); }), HasSubstr("no matrices"));
}

}  // namespace
}  // namespace tessera::test
