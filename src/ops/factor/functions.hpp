// The factorizations as recorded ops, on batches of matrices of one inexact dtype with equal batch dims.
// src/linalg builds NumPy's functions from them.
#pragma once
#include <tessera/ops/choices.hpp>

#include "ops/build.hpp"

namespace tessera::factor {

using linalg::IllConditioned;
struct SolveHow {
  std::int64_t block = 0;                                   // of the block-cyclic layout; 0: chosen
  int grid_rows = 0;                                        // of the process grid; 0: chosen
  bool refuse_singular = false;                             // for lu_factor: LinAlgError for a zero pivot
  bool nan_for_failure = false;                             // for cholesky: NaN instead of LinAlgError
  bool divide_by_zero = false;                              // for solve: infinities instead of LinAlgError
  IllConditioned ill_conditioned = IllConditioned::accept;  // for solve
};
Array solve(const Array& a, const Array& b, SolveHow);        // b: (..., n, k)
std::pair<Array, Array> lu_factor(const Array& a, SolveHow);  // lu, pivots
Array cholesky(const Array& a, SolveHow);
struct Triangle {
  bool lower = false, transpose = false, conjugate = false, unit_diagonal = false;
  template <class V> void fields(V&& visit) const {
    visit("lower", lower);
    visit("transpose", transpose);
    visit("conjugate", conjugate);
    visit("unit_diagonal", unit_diagonal);
  }
};
Array triangular_solve(const Array& a, const Array& b, Triangle);
std::pair<Array, Array> qr(const Array& a, bool complete);
std::pair<Array, Array> eigh(const Array& a);  // w, v
Array eigvalsh(const Array& a);
struct SvdParts {
  Array u, s, vh;
};
SvdParts svd(const Array& a, bool full_matrices);
Array svdvals(const Array& a);
// Converts int32 (..., k) exchanges to int32 (..., m): the row of A at each row of L U.
Array pivots_to_permutation(const Array& pivots, std::int64_t rows);

// Building blocks for vjp rules.
Array adjoint(const Array& a);  // swaps the last two dims and conjugates
Array transposed(const Array& a);
Array lower_part(const Array& a, int k = 0);  // NumPy's tril; keeps the layout
Array upper_part(const Array& a, int k = 0);
Array diagonal_mask(const Array& like,
                    Dtype);  // ones where row == column, in the shape of like's last two dims

}  // namespace tessera::factor
