// LAPACK's functions for nonsymmetric matrices, and the column order of QR with pivoting. As in lapack.hpp:
// batches of row-major matrices; a matrix that is not finite gives NaN.
#pragma once
#include "kernels/factor/lapack.hpp"

namespace tessera::kernels {

// Complex a. Eigenvalues w (n), and v (n, n) with eigenvectors of length 1 as columns unless null. Where no
// element has an imaginary part, they are a real matrix's: complex eigenvalues in exact pairs.
Breakdown eig(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v);
// a = z t z^H: t is upper triangular; for real matrices it has 2 x 2 blocks for pairs of complex eigenvalues.
Breakdown schur(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* t, void* z);
// columns[j] = the column of a (m, n), from 0, that pivoting moves to position j, so that |r_00| >= |r_11| >=
// ...
void pivoted_columns(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a,
                     std::int32_t* columns);

// Bytes that these functions need besides operands and results, for one matrix at a time.
std::int64_t eig_workspace(Dtype, std::int64_t n, bool vectors);
std::int64_t schur_workspace(Dtype, std::int64_t n);
std::int64_t pivots_workspace(Dtype, std::int64_t m, std::int64_t n);

}  // namespace tessera::kernels
