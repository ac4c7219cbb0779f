// Solvers and eigensolvers compared with dense linear algebra.
#include <tessera/linalg.hpp>

#include "sparse/matrices.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t side = 7;
constexpr std::int64_t n = side * side;
const sparse::SolverOptions tight{.tol = 1e-11};

// A nonsymmetric matrix: convection and diffusion.
sparse::Csr with_convection() {
  const auto a = laplacian(side, by_rows());
  return a.with_values(a.values() * (1 + 0.2 * astype(a.entry_columns() > a.entry_rows(), float64)));
}
Array right_side() { return device_put(wave(n), by_rows()); }

TEST(Krylov, conjugate_gradients_solve_a_laplacian) {
  const auto a = laplacian(side, by_rows());
  const auto found = sparse::cg(a, right_side(), tight);
  EXPECT_TRUE(item<bool>(found.converged));
  EXPECT_LT(item<int>(found.iterations), 60);
  expect_alike(found.x, linalg::solve(sparse::to_dense(a), wave(n)), 1e-9);
  EXPECT_EQ(found.x.sharding(), by_rows());
}

TEST(Krylov, inside_jit_as_outside) {
  const auto a = laplacian(side, by_rows());
  const auto inside = jit([&](const Array& b) { return sparse::cg(a, b, tight).x; })(right_side());
  expect_alike(inside, sparse::cg(a, right_side(), tight).x, 1e-9);
}

TEST(Krylov, general_systems) {
  const auto a = with_convection();
  const Array expected = linalg::solve(sparse::to_dense(a), wave(n));
  const auto solve = [&](const Array& b) {
    return std::pair{sparse::gmres(a, b, tight), sparse::bicgstab(a, b, tight)};
  };
  const auto [g, s] = jit(solve)(right_side());
  EXPECT_TRUE(item<bool>(g.converged) && item<bool>(s.converged));
  expect_alike(g.x, expected, 1e-8);
  expect_alike(s.x, expected, 1e-8);
}

TEST(Krylov, a_function_a_dense_matrix_and_a_complex_one) {
  const Array dense = sparse::to_dense(laplacian(3, by_rows(), 1));
  const Array b = wave(9);
  const Array expected = linalg::solve(dense, b);
  expect_alike(sparse::cg(dense, b, tight).x, expected, 1e-9);
  expect_alike(sparse::cg([&](const Array& x) { return matmul(dense, x); }, b, tight).x, expected, 1e-9);
  const std::complex<double> i(0, 1);
  const Array skewed = dense + i * (triu(dense, 1) - tril(dense, -1)) * 0.5, z = b + i * flip(b, 0);
  const Array hermitian = linalg::solve(skewed, z);
  expect_alike(sparse::cg(skewed, z, tight).x, hermitian, 1e-9);
  expect_alike(sparse::gmres(skewed + i * eye(9, float64), z, tight).x,
               linalg::solve(skewed + i * eye(9, float64), z), 1e-8);
  expect_alike(sparse::bicgstab(skewed + i * eye(9, float64), z, tight).x,
               linalg::solve(skewed + i * eye(9, float64), z), 1e-8);
}

TEST(Krylov, preconditioners_save_steps) {
  const auto base = laplacian(side, by_rows());
  // Rows of very different magnitude.
  const Array scale = 1 + astype(arange(n) % 7, float64) * 20;
  const Array rows = where(base.entry_rows() >= 0, base.entry_rows(), zeros_like(base.entry_rows())),
              columns = where(base.entry_columns() >= 0, base.entry_columns(), zeros_like(rows));
  const auto a = base.with_values(base.values() * sqrt(take(scale, rows, 0) * take(scale, columns, 0)));
  const auto steps = [&](std::optional<sparse::LinearMap> m) {
    const auto found = sparse::cg(a, right_side(), {.tol = 1e-9, .preconditioner = std::move(m)});
    EXPECT_TRUE(item<bool>(found.converged));
    return item<int>(found.iterations);
  };
  const int plain = steps(std::nullopt), jacobi = steps(sparse::jacobi(a)),
            block = steps(sparse::block_jacobi(a));
  EXPECT_LT(jacobi, plain);
  EXPECT_LE(block, jacobi);
  if (device_count() <= 4) {  // on more ranks a block is at most a row of the grid
    EXPECT_LT(block, jacobi);
  }
}

TEST(Krylov, incomplete_lu_of_a_tridiagonal_matrix_on_one_rank_is_exact) {
  if (device_count() > 1) GTEST_SKIP() << "each rank factors its own block";
  const auto a = sparse::from_dense(
      2 * eye(9, float64) - eye(9, 9, 1, float64) - eye(9, 9, -1, float64) * 0.5, by_rows());
  const auto m = sparse::block_jacobi(a);
  expect_alike(m(sparse::matmul(a, wave(9))), wave(9), 1e-11);
  expect_alike(m.transposed(wave(9))(sparse::matmul(a.T(), wave(9))), wave(9), 1e-11);
}

TEST(Krylov, preconditioners_refuse_vectors_of_other_lengths) {
  const auto a = scattered_matrix(9, 9, by_rows());
  const auto strong = a.with_values(a.values() + 6 * astype(a.entry_rows() == a.entry_columns(), float64));
  for (const auto& m : {sparse::jacobi(strong), sparse::block_jacobi(strong)})
    for (const auto& x : {wave(8), wave(1), wave(0), Array(1.0)})
      expect_error<ShapeError>([&] { eval(m(x)); },
                               {"the matrix has 9 rows", "the first dim of x must be 9"});
}

TEST(Krylov, gradients_of_solutions_solve_the_transposed_system) {
  const auto a = scattered_matrix(8, 8, by_rows());
  const auto strong = a.with_values(a.values() + 6 * astype(a.entry_rows() == a.entry_columns(), float64) *
                                                     astype(a.entry_rows() >= 0, float64));
  const Array dense = sparse::to_dense(strong), b = wave(8);
  const auto f = [&](const Array& v, const Array& c) {
    const auto m = strong.with_values(v);
    return sum(sin(sparse::gmres(m, c, {.tol = 1e-12, .preconditioner = sparse::block_jacobi(m)}).x));
  };
  const auto g = [&](const Array& d, const Array& c) { return sum(sin(linalg::solve(d, c))); };
  const auto [by_values, by_b] = grad<0, 1>(f)(strong.values(), b);
  const auto [by_dense, expected_b] = grad<0, 1>(g)(dense, b);
  expect_alike(by_b, expected_b, 1e-8);
  const Array rows = a.entry_rows(), columns = a.entry_columns();
  const Array at = take(reshape(by_dense, {-1}), where(rows >= 0, rows * 8 + columns, zeros_like(rows)), 0);
  expect_alike(by_values, where(rows >= 0, at, zeros_like(at)), 1e-8);
  // The gradient through values that the function captures.
  const auto h = [&](const Array& s) {
    return sum(sparse::cg([s](const Array& x) { return s * x + x; }, b, {.tol = 1e-12}).x);
  };
  expect_alike(grad(h)(full({}, 3.0, float64)), -sum(b) / 16, 1e-8);
}

TEST(Krylov, extreme_eigenvalues_of_a_laplacian) {
  const auto a = laplacian(side, by_rows());
  const auto [all, vectors] = linalg::eigh(sparse::to_dense(a));
  const Array x0 = device_put(sin(reshape(arange(n * 3), {n, 3}) * 0.37) + 0.1, line(), P("x"));
  const Array start = astype(x0, float64);
  for (const bool largest : {false, true}) {
    const Array expected = largest ? flip(all(slice(n - 3, n)), 0) : all(slice(0, 3));
    const auto found =
        sparse::lobpcg(a, start, {.largest = largest, .tol = 1e-9, .preconditioner = sparse::jacobi(a)});
    expect_alike(found.w, expected, 1e-9);
    expect_alike(matmul(transpose(found.v), found.v), eye(3, float64), 1e-9);
    expect_alike(sparse::lanczos(a, start(slice(), 0), 2, n, {.largest = largest}).w, expected(slice(0, 2)),
                 1e-8);
  }
}

TEST(Krylov, lanczos_of_a_space_that_is_used_up) {
  const Array a = eye(6, float64) * 3;
  expect_alike(sparse::lanczos(a, wave(6), 1, 4).w, array<double>({3}), 1e-12);
  for (const bool largest : {false, true}) {
    const auto found = sparse::lanczos(a, wave(6), 2, 4, {.largest = largest});
    expect_alike(found.w(slice(0, 1)), array<double>({3}), 1e-12);
    EXPECT_TRUE(item<bool>(all(isnan(found.w(slice(1, 2))) & isnan(found.residual(slice(1, 2))))))
        << "there is no second one";
  }
}

TEST(Krylov, without_convergence_it_says_so) {
  const auto found = sparse::cg(laplacian(side, by_rows()), right_side(), {.tol = 1e-12, .maxiter = 2});
  EXPECT_FALSE(item<bool>(found.converged));
  EXPECT_EQ(item<int>(found.iterations), 2);
}

TEST(Krylov, errors_name_shapes_and_options) {
  const auto a = scattered_matrix(6, 4, by_rows());
  EXPECT_THAT(error_of<ShapeError>([&] { (void)sparse::cg(a, wave(4)); }), HasSubstr("it must be square"));
  const auto square = laplacian(2, by_rows());
  EXPECT_THAT(error_of<ShapeError>([&] { (void)sparse::gmres(square, wave(5)); }),
              HasSubstr("the first dim of b must be 4"));
  EXPECT_THAT(error_of<DtypeError>([&] { (void)sparse::cg(square, arange(4)); }), HasSubstr("int32"));
  const sparse::LinearMap wider = [](const Array& x) { return astype(x, float64) * 4; };
  EXPECT_THAT(
      error_of<DtypeError>([&] { (void)sparse::cg(wider, ones({4})); }),
      HasSubstr("b has the dtype float32, but the matrix makes float64 of it; convert b with astype(b, "
                "float64), or the matrix"));
  const sparse::LinearMap complex = [](const Array& x) { return astype(x, complex128); };
  EXPECT_THAT(error_of<DtypeError>(
                  [&] { (void)sparse::gmres(square, ones({4}, float64), {.preconditioner = complex}); }),
              HasSubstr("but the preconditioner makes complex128"));
  EXPECT_THAT(error_of<ArgumentError>([&] { (void)sparse::cg(square, wave(4), {.tol = -1}); }),
              HasSubstr("must not be negative"));
  EXPECT_THAT(error_of<ShapeError>([&] {
                (void)sparse::lobpcg(square, ones({4, 2}, float64));
              }),
              HasSubstr("3 k <= n"));
  EXPECT_THAT(error_of<ArgumentError>([&] { (void)sparse::lanczos(square, wave(4), 3, 2); }),
              HasSubstr("0 < k <= steps <= n"));
}

}  // namespace
}  // namespace tessera::test
