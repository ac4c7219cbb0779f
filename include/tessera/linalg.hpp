// Dense linear algebra with the names and meaning of numpy.linalg and scipy.linalg.
//
// Matrices are the last two dims, the dims before them a batch; integers become float32. Split batch dims
// stay where they are and need no communication. A matrix whose own dims are split is factored by the ranks
// that hold it together, on a block-cyclic layout: nobody gathers it, and results lie as the operand (x as
// b). Memory per rank: one copy of its shard and a few panels.
//
// Errors: ShapeError and DtypeError when recorded; LinAlgError on every rank when computed, naming the pivot
// and the batch element. NaN comes out as NaN. All of it can be differentiated and batched with vmap.
#pragma once
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>

namespace tessera::linalg {

struct LU {
  Array p, l, u;
};
struct LuFactor {
  Array lu, pivots;
};
struct QR {
  Array q, r;
};
struct SVD {
  Array u, s, vh;
};
struct Eigh {
  Array w, v;
};
struct SlogDet {
  Array sign, logabsdet;
};
struct TriangularOptions {
  bool lower = false;
  bool transpose = false;
  bool unit_diagonal = false;
};
struct SvdOptions {
  bool full_matrices = true;
};
struct SolveOptions {
  bool refine = false;  // factor in float32 (complex64), correct with residuals in float64 (complex128). For
                        // matrices whose rcond is well above float32's rounding unit, 6e-8; LinAlgError where
                        // the factor is singular in float32
  std::int64_t block = 0;  // of the block-cyclic layout; 0: chosen
  int grid_rows = 0;       // of the grid of ranks; must divide their number, 0: chosen
};

// a x = b by LU with partial pivoting. a (..., n, n); b (..., n, k), or (n), or (..., n) with exactly one
// dim less than a and a's leading dims (a stack of vectors). Batch dims broadcast. Backward stable: the
// residual is a small multiple of n eps |a| |x|.
Array solve(const Operand& a, const Operand& b, SolveOptions options = {});
// a = p l u: p (..., m, m) permutes (real), l (..., m, k) has a unit diagonal, u (..., k, n); k = min(m, n).
// A singular matrix is no error.
LU lu(const Operand& a);
// l (below the diagonal) and u in one matrix, and for each step the row that was exchanged with, from 0
// (int32).
LuFactor lu_factor(const Operand& a, SolveOptions options = {});
Array lu_solve(const LuFactor& factor, const Operand& b);
// Lower l with l l^H = a. Only the lower triangle of a is read (and receives the gradient).
Array cholesky(const Operand& a);
Array cholesky_solve(const Operand& l, const Operand& b);  // l l^H x = b
// Only the named triangle of a is read. A zero on the diagonal gives infinities.
Array triangular_solve(const Operand& a, const Operand& b, TriangularOptions options = {});

// Reduced: q (..., m, k), r (..., k, n), k = min(m, n).
QR qr(const Operand& a);
// a = u s vh with s descending; u (..., m, m) and vh (..., n, n), or k columns and rows when not
// full_matrices.
SVD svd(const Operand& a, SvdOptions options = {});
Array svdvals(const Operand& a);
// Ascending w and eigenvectors as columns of v; only the lower triangle of a is read.
Eigh eigh(const Operand& a);
Array eigvalsh(const Operand& a);

Array inv(const Operand& a);
Array det(const Operand& a);
SlogDet slogdet(const Operand& a);
// Of all elements, as one vector: the Frobenius norm of a matrix.
Array norm(const Operand& x);
// Vector norms over one axis (any p, 0, inf, -inf), matrix norms over two (1, -1, 2, -2, inf, -inf); "fro",
// "nuc".
Array norm(const Operand& x, double ord, Axes axes = {}, bool keepdims = false);
Array norm(const Operand& x, const std::string& ord, Axes axes = {}, bool keepdims = false);
Array cond(const Operand& a);  // in the 2-norm
Array cond(const Operand& a, double ord);
// An estimate of 1 / cond(a, 1) = 1 / (|a|_1 |a^-1|_1) from the LU factor (Hager and Higham's method, as
// LAPACK's gecon): O(n^2) work beside the factorization, never below the true value and rarely above three
// times it. 0: singular to working precision; below eps, no digit of a solution need be right. Of a factor
// that is there already, with the 1-norms norm(a, 1, {-2, -1}) of what was factored. Has no derivative.
Array rcond(const Operand& a);
Array rcond(const LuFactor& factor, const Operand& norm1);
// The x of least norm among those that minimize |a x - b|; singular values below eps max(m, n) times the
// largest count as zero.
Array lstsq(const Operand& a, const Operand& b);
Array matrix_power(const Operand& a, int n);
Array matrix_rank(const Operand& a);  // int32
Array pinv(const Operand& a);
Array expm(const Operand& a);  // Pade approximation, scaling and squaring (Higham 2005)

}  // namespace tessera::linalg
