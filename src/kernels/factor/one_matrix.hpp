// Factorizations of one large real matrix by the library's own products, on all threads of a rank, with the
// same bits by any number of them. Column-major. T is float or double.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// From this extent on they are at least as quick as LAPACK's on one thread.
inline constexpr std::int64_t large_matrix = 512;

// Lower L with L L^T = a, in place of a's lower triangle; what lies above it is scratch. Returns the first
// leading minor, from 0, that is not positive, or -1.
template <class T> std::int64_t cholesky_in_place(std::int64_t n, T* a, std::int64_t ld);

// Householder QR of a (m x n): R above the diagonal, reflectors below. Then, unless q is null, the first
// q_columns columns of Q. Columns of both start ld apart.
template <class T>
void qr_in_place(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::int64_t q_columns, T* q);

}  // namespace tessera::kernels
