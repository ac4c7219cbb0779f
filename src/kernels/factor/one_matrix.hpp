// Factorizations of one large real matrix by the library's own products, on all threads of a rank, with bits
// that do not depend on their number. Column-major. T is float or double.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// The extent from which these functions are at least as fast as LAPACK on one thread.
inline constexpr std::int64_t large_matrix = 512;

// Lower L with L L^T = a, in place of a's lower triangle; the upper triangle is scratch. Returns the index,
// from 0, of the first leading minor that is not positive, or -1.
template <class T> std::int64_t cholesky_in_place(std::int64_t n, T* a, std::int64_t ld);

// Householder QR of a (m x n): R above the diagonal, reflectors below. Then the first q_columns columns of Q,
// unless q is null. Columns of both are ld apart.
template <class T>
void qr_in_place(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::int64_t q_columns, T* q);

}  // namespace tessera::kernels
