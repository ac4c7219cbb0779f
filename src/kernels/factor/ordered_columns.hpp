// The few columns at which the recursions of panel_factor.hpp end, for a ReproducibleScope: plain loops
// instead of LAPACK and BLAS, whose order of sums depends on their blocks, threads and processor.
// Column-major.
#pragma once
#include <cstdint>

#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels::ordered {

// P L U of m x n in place, as lu_panel: returns the first step with a zero pivot, or -1.
template <class T>
std::int64_t lu_columns(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::int64_t* exchanged);
// A X = B in place of B (n x columns) for a triangle of A.
template <class T> void solve_triangle(bool lower, bool unit_diagonal, std::int64_t n, std::int64_t columns,
                                       const T* a, std::int64_t lda, T* b, std::int64_t ldb);
// X L^H = B in place of B (m x n), L lower triangular.
template <class T> void solve_adjoint_right(std::int64_t m, std::int64_t n, const T* l, std::int64_t ldl,
                                            T* b, std::int64_t ldb);
// The lower triangle of a Hermitian n x n in place. Returns the first pivot that is not positive, or -1.
template <class T> std::int64_t cholesky_block(std::int64_t n, T* a, std::int64_t ld);
// Householder's reflectors of m x n in place and their triangle t (n x n), with LAPACK's signs.
template <class T>
void qr_columns(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* t, std::int64_t ldt);

}  // namespace tessera::kernels::ordered
