// Matrices that are not symmetric, square roots, and what is made of vectors and blocks.
#include <tessera/linalg.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

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
void expect_close(const Array& a, const Array& b, double tolerance = 1e-10) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto x = to_vector<c64>(a), y = to_vector<c64>(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(x[i] - y[i]), tolerance * std::max(1.0, std::abs(y[i]))) << i << ": " << x[i] << y[i];
}
Array adjoint(const Array& x) { return conj(swapaxes(x, -1, -2)); }

TEST(Nonsymmetric, EigenvectorsAreScaledByTheirValues) {
  for (const auto& a : layouts_of(sample(7, 7))) {
    const auto [w, v] = linalg::eig(a);
    expect_close(matmul(astype(a, complex128), v), v * expand_dims(w, 0));
    expect_close(linalg::eigvals(a), w);
  }
}

// numpy.linalg.eigvals([[0, 1], [-2, 3]]) is [1, 2]; of a rotation by a quarter it is +-i.
TEST(Nonsymmetric, KnownEigenvalues) {
  auto two = to_vector<c64>(linalg::eigvals(array<double>({{0, 1}, {-2, 3}})));
  std::sort(two.begin(), two.end(), [](c64 a, c64 b) { return a.real() < b.real(); });
  EXPECT_NEAR(std::abs(two[0] - 1.0) + std::abs(two[1] - 2.0), 0, 1e-13);
  auto turn = to_vector<c64>(linalg::eigvals(array<double>({{0, -1}, {1, 0}})));
  std::sort(turn.begin(), turn.end(), [](c64 a, c64 b) { return a.imag() < b.imag(); });
  EXPECT_NEAR(std::abs(turn[0] + c64(0, 1)) + std::abs(turn[1] - c64(0, 1)), 0, 1e-14);
}

// The tangent of w along da is the change of w by a small step.
TEST(Nonsymmetric, EigenvaluesHaveTangentsAndVectorsSayThatTheyHaveNone) {
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

TEST(Nonsymmetric, BatchesStayWhereTheyAre) {
  const Array batch = device_put(reshape(sample(9, 5 * 5), {9, 5, 5}), line(), P("x"));
  const auto [w, v] = linalg::eig(batch);
  EXPECT_EQ(w.sharding(), batch.sharding());
  expect_close(matmul(astype(batch, complex128), v), v * expand_dims(w, 1));
}

TEST(Nonsymmetric, EigenvaluesHaveDerivatives) {
  const Array a = sample(4, 4), t = sample(4, 4) * 0.3 + 0.1;
  const auto f = [](const Array& m) { return sum(real(exp(linalg::eigvals(m) * 0.3))); };
  const double h = 1e-6;
  const Array quotient = (f(a + h * t) - f(a - h * t)) / (2 * h);
  expect_close(sum(grad(f)(a) * t), quotient, 1e-7);
}

TEST(Nonsymmetric, SchurFormsAreTriangularAndGiveBack) {
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

TEST(Nonsymmetric, SquareRootsSquared) {
  const Array b = sample(6, 6);
  const Array a = matmul(b, transpose(b)) + 0.5 * eye(6, float64) + 0.3 * triu(b, 1);
  for (const auto& placed : layouts_of(a)) {
    const Array root = linalg::sqrtm(placed);
    expect_close(matmul(root, root), a, 1e-9);
  }
  expect_close(linalg::sqrtm(array<double>({{4, 0}, {0, 9}})), array<double>({{2, 0}, {0, 3}}));
}

TEST(Nonsymmetric, PolarFactorsAreOrthonormalAndPositive) {
  for (const auto& a : layouts_of(sample(8, 5))) {
    const auto [u, p] = linalg::polar(a);
    expect_close(matmul(u, p), a);
    expect_close(matmul(transpose(u), u), eye(5, float64));
    EXPECT_GE(item<double>(min(linalg::eigvalsh(p))), -1e-12);
  }
}

TEST(Nonsymmetric, GeneralizedEigenvalues) {
  const Array x = sample(6, 6), a = x + transpose(x), b = matmul(x, transpose(x)) + eye(6, float64);
  for (const auto& placed : layouts_of(a)) {
    const auto [w, v] = linalg::eigh(placed, b);
    expect_close(matmul(a, v), matmul(b, v) * w, 1e-9);
    expect_close(matmul(matmul(transpose(v), b), v), eye(6, float64), 1e-9);
  }
}

TEST(Nonsymmetric, CompleteAndPivotedQr) {
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

TEST(Structured, ToeplitzBlocksAndTensors) {
  expect_close(linalg::toeplitz(array<double>({1, 2, 3}), array<double>({9, 4, 5, 6})),
               array<double>({{1, 4, 5, 6}, {2, 1, 4, 5}, {3, 2, 1, 4}}));
  expect_close(linalg::toeplitz(array<double>({1, 2, 3})), array<double>({{1, 2, 3}, {2, 1, 2}, {3, 2, 1}}));
  expect_close(linalg::block_diag({array<double>({{1, 2}}), array<double>({{3}, {4}})}),
               array<double>({{1, 2, 0}, {0, 0, 3}, {0, 0, 4}}));
  const Array a = reshape(sample(6, 6) + 3 * eye(6, float64), {2, 3, 6}), b = sample(2, 3);
  expect_close(tensordot(a, linalg::tensorsolve(a, b), 1), b);
}

TEST(Structured, ErrorsNameTheShapes) {
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
