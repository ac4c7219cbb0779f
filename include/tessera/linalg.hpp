/// @file
/// Dense linear algebra with the names and meaning of numpy.linalg and scipy.linalg.
///
/// **Shapes.** Matrices are the last two dims, the dims before them a batch. Below, a is (..., m, n) and k =
/// min(m, n).
///
/// **Dtypes.** float32, float64, complex64, complex128; integers become float32. Factorizations refuse
/// bfloat16 and float16 with a DtypeError: convert with astype(x, float32). LAPACK's precision is the
/// operand's.
///
/// **Sharding.** Results have the operand's layout, x that of b. Split batch dims stay in place and need no
/// communication. A matrix whose own dims are split is factored jointly by the ranks that hold it, on a
/// block-cyclic layout, and never gathered. Many small split matrices are scattered, each as a whole. Memory
/// per rank: one copy of its shard and a few panels.
///
/// **Communication.** Not collective: every function here records. A factorization sends each panel along the
/// rows and columns of the grid of ranks, and a solve with few right-hand sides sends sums instead of the
/// matrix; `explain` shows the bytes. For a tall matrix (n up to 512, and as many rows on each of p ranks)
/// split by rows, qr, the reduced svd and functions based on it (svdvals, lstsq, pinv, matrix_rank, norm)
/// move no rows: only log2 p triangles of n (n + 1) / 2 numbers, and the parts of r, u and vh that one rank
/// sends to the others.
///
/// **Numbers.** LU with partial pivoting, Cholesky, Householder QR and two-phase SVD and eigh are backward
/// stable (Higham, Accuracy and Stability of Numerical Algorithms; LAPACK Users' Guide, chapter 4): a result
/// is exact for a matrix that differs from a by a small multiple of n eps |a|. The tests accept 16 for HPL's
/// residual of solve and 50 n eps |a| for the others. Systems of any magnitude are solved, also subnormal
/// ones; lstsq and pinv need singular values whose reciprocals are finite.
///
/// **NaN and infinity.** If the elements of a matrix that are read include NaN or an infinity, every result
/// is NaN (triangles keep their zeros, pivots mean no exchanges, matrix_rank is 0), in any layout; a column
/// of b with NaN or an infinity gives a column of NaN. triangular_solve and cholesky_solve follow plain
/// arithmetic instead.
///
/// **Errors.** ShapeError and DtypeError when recorded; LinAlgError when computed, naming the pivot and the
/// batch element. Both are raised on every rank. All functions can be differentiated and batched with vmap
/// unless stated otherwise.
#pragma once
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/choices.hpp>
#include <tessera/ops/products.hpp>

namespace tessera::linalg {

/// The result of lu: a = p l u.
struct LU {
  Array p;  ///< (..., m, m), a permutation, real
  Array l;  ///< (..., m, k), lower with a unit diagonal
  Array u;  ///< (..., k, n), upper
};
/// The result of lu_factor.
struct LuFactor {
  Array lu;      ///< l below the diagonal, u on and above it
  Array pivots;  ///< for each step the row exchanged with, from 0 (int32)
};
/// The result of qr: a = q r.
struct QR {
  Array q;  ///< (..., m, k), orthonormal columns
  Array r;  ///< (..., k, n), upper
};
/// The result of svd: a = u diag(s) vh.
struct SVD {
  Array u;   ///< left singular vectors as columns
  Array s;   ///< (..., k), real, descending
  Array vh;  ///< right singular vectors as rows, conjugated
};
/// The result of eigh: a v = v diag(w).
struct Eigh {
  Array w;  ///< (..., n), real, ascending
  Array v;  ///< (..., n, n), eigenvectors as columns
};
/// The result of eig: a v = v diag(w).
struct Eig {
  Array w;  ///< (..., n), complex, in LAPACK's order
  Array v;  ///< (..., n, n), eigenvectors of length 1 as columns, complex
};
/// The result of schur: a = z t z^H.
struct Schur {
  Array t;  ///< upper triangular; for a real matrix with 2 x 2 blocks for pairs of complex eigenvalues
  Array z;  ///< unitary
};
/// The result of polar: a = u p.
struct Polar {
  Array u;  ///< (..., m, n), orthonormal columns
  Array p;  ///< (..., n, n), Hermitian positive semidefinite
};
/// The result of qr_pivoted: a[:, columns] = q r.
struct PivotedQR {
  Array q;        ///< (..., m, k), orthonormal columns
  Array r;        ///< (..., k, n), upper, its diagonal descending in absolute value
  Array columns;  ///< (..., n), the column of a at each position (int32)
};
/// Options of qr.
struct QrOptions {
  bool complete = false;  ///< q (m, m) and r (m, n) instead of (m, k) and (k, n)
};
/// The result of slogdet: det(a) = sign exp(logabsdet).
struct SlogDet {
  Array sign;       ///< modulus 1, or 0 if singular
  Array logabsdet;  ///< real; -inf of a singular matrix
};
/// Options of triangular_solve.
struct TriangularOptions {
  bool lower = false;          ///< read the lower triangle of a, otherwise the upper one
  bool transpose = false;      ///< solve a^T x = b
  bool unit_diagonal = false;  ///< treat the diagonal as ones without reading it
};
/// Options of svd.
struct SvdOptions {
  bool full_matrices = true;  ///< u (..., m, m) and vh (..., n, n); otherwise k columns and rows
};
/// Options of solve and lu_factor.
struct SolveOptions {
  /// Factors in float32 (complex64) and corrects with residuals in float64 (complex128). For matrices whose
  /// rcond is well above float32's rounding unit, 6e-8; LinAlgError if the factor is singular in float32.
  bool refine = false;
  std::int64_t block = 0;  ///< block size of the block-cyclic layout; 0: chosen. ArgumentError if negative
  int grid_rows = 0;       ///< rows of the grid of ranks; must divide the number of ranks, 0: chosen
  /// Applies to solve without refine. The estimate comes from one additional right-hand side of random signs:
  /// it is seldom more than ten times the true rcond and costs a few per cent of the time. In batches of
  /// small matrices only those with widely spread pivots are checked.
  IllConditioned ill_conditioned = IllConditioned::warn;
};

/// multi_dot(operands): the product of several matrices in the order of the fewest multiplications.
using tessera::multi_dot;

/// @name Linear systems
/// @{

/// The x of a x = b by LU with partial pivoting. a (..., n, n); b (..., n, k), or (n), or (..., n) with
/// exactly one dim less than a and a's leading dims (a stack of vectors). Batch dims broadcast. The residual
/// |a x - b| is a small multiple of n eps (|a| |x| + |b|), and the error that times cond(a). LinAlgError for
/// a singular matrix; a warning, or an error, for one that is singular to working precision.
[[nodiscard]] Array solve(const Operand& a, const Operand& b, SolveOptions options = {});
/// a = p l u with partial pivoting. A singular matrix is not an error.
LU lu(const Operand& a);
/// The same, packed as by LAPACK's getrf, for square and other matrices.
LuFactor lu_factor(const Operand& a, SolveOptions options = {});
/// The x of a x = b from a's factor: two triangular solves.
[[nodiscard]] Array lu_solve(const LuFactor& factor, const Operand& b);
/// Lower l with l l^H = a. Only the lower triangle of a is read (and receives the gradient). LinAlgError
/// unless a is positive definite.
[[nodiscard]] Array cholesky(const Operand& a);
/// The x of l l^H x = b: two triangular solves.
[[nodiscard]] Array cholesky_solve(const Operand& l, const Operand& b);
/// The x of a x = b for a triangular a. Only the named triangle is read. A zero on the diagonal gives
/// infinities.
[[nodiscard]] Array triangular_solve(const Operand& a, const Operand& b, TriangularOptions options = {});
/// The inverse, by LU. Prefer solve: it is faster and more accurate. LinAlgError for a singular matrix.
[[nodiscard]] Array inv(const Operand& a);
/// The x of least norm among those that minimize |a x - b|, by SVD; singular values below eps max(m, n) times
/// the largest count as zero.
[[nodiscard]] Array lstsq(const Operand& a, const Operand& b);
/// The Moore-Penrose inverse, by SVD; singular values below max(1e-15, eps max(m, n)) times the largest
/// count as zero.
[[nodiscard]] Array pinv(const Operand& a);
/// @}

/// @name Decompositions
/// @{

/// Householder QR, reduced unless `complete`, with LAPACK's signs in any layout.
QR qr(const Operand& a, QrOptions options = {});
/// QR of a with its columns ordered so that those that add most come first. One rank finds the order from the
/// whole matrix; the factorization is qr's.
PivotedQR qr_pivoted(const Operand& a);
/// Singular value decomposition; each value is off by at most a small multiple of n eps times the largest.
SVD svd(const Operand& a, SvdOptions options = {});
/// The singular values alone, descending.
[[nodiscard]] Array svdvals(const Operand& a);
/// Eigenvalues and vectors of a Hermitian matrix; only the lower triangle of a is read. Each value is off
/// by at most a small multiple of n eps |a|.
Eigh eigh(const Operand& a);
/// The same for a v = b v diag(w) with a Hermitian positive definite b (the lower triangles are read), by
/// cholesky: v^H b v = 1. LinAlgError unless b is positive definite.
Eigh eigh(const Operand& a, const Operand& b);
/// The eigenvalues alone, ascending.
[[nodiscard]] Array eigvalsh(const Operand& a);
/// Eigenvalues and vectors of any square matrix. Gathers a split matrix and computes on every rank that needs
/// the result: suited for up to some thousand rows. Only w has a derivative.
Eig eig(const Operand& a);
/// The eigenvalues alone.
[[nodiscard]] Array eigvals(const Operand& a);
/// The Schur form; gathers a split matrix as eig does. Has no derivative.
Schur schur(const Operand& a);
/// The polar decomposition of a with m >= n, by SVD.
Polar polar(const Operand& a);
/// @}

/// @name Structured matrices and tensors
/// @{

/// The x with tensordot(a, x, x.ndim) = b: a's leading dims are b's, followed by dims with as many elements.
/// ShapeError otherwise.
[[nodiscard]] Array tensorsolve(const Operand& a, const Operand& b);
/// The (m, n) matrix with one value per diagonal, given by its first column, and its first row from the
/// second element on (conj(column) by default). ShapeError unless they are vectors.
[[nodiscard]] Array toeplitz(const Operand& column);
[[nodiscard]] Array toeplitz(const Operand& column, const Operand& row);
/// Matrices along the diagonal, zeros elsewhere. ShapeError unless they are matrices, ArgumentError for none.
[[nodiscard]] Array block_diag(std::vector<Array> matrices,
                               std::source_location where = std::source_location::current());
/// @}

/// @name Numbers that describe a matrix
/// @{

/// The determinant, by LU: overflows sooner than slogdet.
[[nodiscard]] Array det(const Operand& a);
/// Sign and logarithm of the determinant, by LU.
SlogDet slogdet(const Operand& a);
/// The norm of all elements as one vector: the Frobenius norm of a matrix. With an order: vector norms over
/// one axis (any p, 0, inf, -inf), matrix norms over two (1, -1, 2, -2, inf, -inf, "fro", "nuc"). 2, -2 and
/// "nuc" use an SVD, the others one or two reductions. ArgumentError for another order or number of axes.
[[nodiscard]] Array norm(const Operand& x);
[[nodiscard]] Array norm(const Operand& x, double ord, Axes axes = {}, bool keepdims = false);
[[nodiscard]] Array norm(const Operand& x, const std::string& ord, Axes axes = {}, bool keepdims = false);
/// The condition number |a| |a^-1| in the 2-norm (by SVD), or in another norm (by inv).
[[nodiscard]] Array cond(const Operand& a);
[[nodiscard]] Array cond(const Operand& a, double ord);
/// An estimate of 1 / cond(a, 1) = 1 / (|a|_1 |a^-1|_1) from the LU factor (Hager and Higham's method, as
/// LAPACK's gecon): O(n^2) work besides the factorization, never below the true value and rarely above three
/// times it. 0: singular to working precision; below eps, no digit of a solution need be right. The second
/// form uses an existing factor, with the 1-norms norm(a, 1, {-2, -1}) of the factored matrix. Has no
/// derivative.
[[nodiscard]] Array rcond(const Operand& a);
[[nodiscard]] Array rcond(const LuFactor& factor, const Operand& norm1);
/// The number of singular values above eps max(m, n) times the largest: int32.
[[nodiscard]] Array matrix_rank(const Operand& a);
/// @}

/// @name Functions of a matrix
/// @{

/// a^n by repeated squaring; for negative n of inv(a). LinAlgError for a singular matrix then.
[[nodiscard]] Array matrix_power(const Operand& a, int n);
/// The principal square root of a matrix without eigenvalues on the negative real axis or 0, by the product
/// form of Newton's iteration (Higham 2008, 6.29) with inverses: a split matrix is not gathered. NaN where
/// it does not converge.
[[nodiscard]] Array sqrtm(const Operand& a);
/// e^a: [13/13] Pade approximation, scaling and squaring (Higham 2005).
[[nodiscard]] Array expm(const Operand& a);
/// @}

}  // namespace tessera::linalg
