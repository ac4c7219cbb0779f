// LAPACK's functions for matrices that are not symmetric, and the order of columns of QR with pivoting. As in
// lapack.hpp: batches of row-major matrices; a matrix that is not finite gives NaN.
#pragma once
#include "kernels/factor/lapack.hpp"

namespace tessera::kernels {

// Complex a. Eigenvalues w (n), and v (n, n) with eigenvectors of length 1 as columns unless null.
Breakdown eig(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v);
// a = z t z^H: t upper triangular, of real matrices with blocks of two rows for pairs of complex values.
Breakdown schur(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* t, void* z);
// The column of a (m, n) that stands at each place (n), from 0, so that QR gives |r_00| >= |r_11| >= ...
void pivoted_columns(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a,
                     std::int32_t* columns);

// Bytes that they take beside operands and results, for one matrix after the other.
std::int64_t eig_workspace(Dtype, std::int64_t n, bool vectors);
std::int64_t schur_workspace(Dtype, std::int64_t n);
std::int64_t pivots_workspace(Dtype, std::int64_t m, std::int64_t n);

}  // namespace tessera::kernels
