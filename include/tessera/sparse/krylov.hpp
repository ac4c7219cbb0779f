/// @file
/// Iterative solvers and eigensolvers for any linear function of an array: a sparse matrix, a dense one, or
/// code. They only need products with it.
///
/// Vectors stay in place; a step adds a few all-reduces of a few numbers to the product's traffic. Outside
/// jit each step reads one number to decide whether to continue (collective over all ranks); inside jit a
/// solver is one instruction. Real and complex dtypes; for several right-hand sides use vmap.
///
/// The solution of a linear system can be differentiated by b and by all values that the function depends on:
/// the gradient solves the transposed system once, regardless of the number of steps. The function is then
/// called again after the solver has returned, so it must capture by value.
#pragma once
#include <functional>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <tessera/array.hpp>
#include <tessera/sparse.hpp>

namespace tessera::sparse {

/// A linear function of an array that returns an array of the same shape.
class LinearMap {
 public:
  /// A sparse matrix.
  LinearMap(Csr a);
  /// A dense matrix.
  LinearMap(Array a);
  /// Any linear function; it is recorded, so it may use any arrays.
  template <class F>
  requires(std::is_invocable_r_v<Array, const F&, const Array&>) LinearMap(F f) : apply_(std::move(f)) {}
  Array operator()(const Array& x) const;  ///< its value
  /// The transposed function: a.T for a matrix, derived by differentiation for other functions.
  LinearMap transposed(const Array& example) const;

 private:
  std::function<Array(const Array&)> apply_;
  std::optional<Csr> sparse_;
  std::optional<Array> dense_;
  friend void check_system(const LinearMap&, const Array& b);
};

/// @name Preconditioners
/// Approximate inverses: functions passed to a solver.
/// @{

/// Division by the diagonal.
[[nodiscard]] LinearMap jacobi(const Csr& a, std::source_location where = std::source_location::current());
/// Incomplete LU without fill of each rank's diagonal block (block Jacobi with ILU(0)): without
/// communication, and stronger with fewer ranks. Symmetric for a symmetric matrix. ShapeError unless a is
/// square, LinAlgError when computed for a row without a pivot.
[[nodiscard]] LinearMap block_jacobi(const Csr& a,
                                     std::source_location where = std::source_location::current());
/// @}

/// Options of the linear solvers.
struct SolverOptions {
  double tol = 1e-5;                             ///< stops when |b - a x| <= max(tol |b|, atol)
  double atol = 0;                               ///< see tol
  int maxiter = 0;                               ///< maximum number of steps; 0: ten times the size of b
  int restart = 20;                              ///< for gmres: number of vectors kept
  std::optional<Array> x0 = {};                  ///< the starting point; default zeros
  std::optional<LinearMap> preconditioner = {};  ///< an approximate inverse of a
};
/// The result of a solver.
struct Solution {
  Array x;           ///< the solution, in b's layout
  Array iterations;  ///< steps taken (int32)
  Array residual;    ///< |b - a x| according to the recurrence
  Array converged;   ///< whether the tolerance was reached (bool)
};

/// @name Linear systems
/// a x = b. ShapeError for a matrix that is not square or b of another length, DtypeError for integers,
/// ArgumentError for options out of range.
/// @{

/// Conjugate gradients, for Hermitian positive definite a (and preconditioner). One all-reduce of three
/// numbers per step (Chronopoulos and Gear, 1989).
[[nodiscard]] Solution cg(const LinearMap& a, const Operand& b, SolverOptions options = {});
/// Restarted GMRES, for any a. A step of the inner loop orthogonalizes twice: two all-reduces with one number
/// per kept vector, and a norm (Saad and Schultz, 1986). `iterations` counts restarts.
[[nodiscard]] Solution gmres(const LinearMap& a, const Operand& b, SolverOptions options = {});
/// BiCGSTAB, for any a, in little memory: three all-reduces of up to two numbers, and two products, per step
/// (van der Vorst, 1992).
[[nodiscard]] Solution bicgstab(const LinearMap& a, const Operand& b, SolverOptions options = {});
/// @}

/// Options of the eigensolvers.
struct EigenOptions {
  bool largest = false;                          ///< the largest eigenvalues instead of the smallest
  double tol = 1e-6;                             ///< stops when |a v - w v| <= tol |w| for each pair
  int maxiter = 200;                             ///< maximum number of steps of lobpcg
  std::optional<LinearMap> preconditioner = {};  ///< for lobpcg: an approximate inverse of a
};
/// Eigenvalues, ascending (descending for the largest), with their vectors as columns.
struct Eigenpairs {
  Array w;           ///< (k), real
  Array v;           ///< (n, k), orthonormal
  Array iterations;  ///< steps taken (int32)
  Array residual;    ///< (k), |a v - w v|
};

/// @name Eigenvalues of Hermitian functions
/// @{

/// k extreme eigenvalues by LOBPCG (Knyazev, 2001) from the columns of x0 (n, k); 3 k must not exceed n. The
/// function is called with up to 3 k columns at once. A step sums matrices of up to 3 k x 3 k over the ranks
/// and computes a tall QR. ShapeError for other shapes.
[[nodiscard]] Eigenpairs lobpcg(const LinearMap& a, const Operand& x0, EigenOptions options = {});
/// k extreme eigenvalues from `steps` Lanczos vectors starting with v0 (n), each orthogonalized against all
/// previous ones: memory for `steps` vectors. Where products with v0 span fewer than k dims, the eigenvalues
/// that are missing and their residuals are NaN. ArgumentError unless 0 < k <= steps <= n.
[[nodiscard]] Eigenpairs lanczos(const LinearMap& a, const Operand& v0, int k, int steps,
                                 EigenOptions options = {});
/// @}

}  // namespace tessera::sparse
