// Factorizations and solves of batches of row-major matrices in one rank's memory. Every function takes
// `batch` contiguous dense matrices; results may not overlap operands. Element types: float32, float64,
// complex64, complex128. A matrix with a NaN or infinity in the part that is read gives NaN and no row
// exchanges; such a column of solve's right-hand side gives a column of NaN.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

namespace tessera::kernels {

// The first matrix of the batch that cannot be factored, and the index of its zero pivot or non-positive
// leading minor.
struct Breakdown {
  std::int64_t matrix = -1, index = -1;
  bool happened() const { return matrix >= 0; }
};

// x (n, k) with a (n, n) x = b (n, k): LU with partial pivoting. Batches of real matrices up to 32 x 32 are
// solved several at a time, one per vector lane. rcond, unless null, receives an estimate of 1 / (|a| |a^-1|)
// per matrix, at the cost of one more right-hand side; it is 1 for matrices without small pivots.
Breakdown solve(Dtype, std::int64_t batch, std::int64_t n, std::int64_t k, const void* a, const void* b,
                void* x, double* rcond = nullptr);
// L (unit diagonal, below) and U of the (m, n) matrices, and for each step the row that it was exchanged
// with, counted from 0.
void lu_factor(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a, void* lu,
               std::int32_t* pivots);
// Lower L with L L^H = a; reads the lower triangle of a, zeroes the upper one of l.
Breakdown cholesky(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* l);

struct TriangleUse {
  bool lower = false, transpose = false, conjugate = false, unit_diagonal = false;
};
// op(a) x = b; only the named triangle of a is read. A zero on the diagonal gives infinities.
void triangular_solve(Dtype, std::int64_t batch, std::int64_t n, std::int64_t k, TriangleUse, const void* a,
                      const void* b, void* x);
// q (m, kq), r (kq, n) with kq = m when `complete`, else min(m, n). q or r may be null.
void qr(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool complete, const void* a, void* q,
        void* r);
// Ascending eigenvalues w (n, real), and v (n, n) with eigenvectors as columns unless null; reads the lower
// triangle.
Breakdown eigh(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v);
// Descending s (min(m, n), real); u (m, ku) and vh (kv, n) unless null: ku = m, kv = n when `full`, else
// min(m, n).
Breakdown svd(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool full, const void* a, void* u,
              void* s, void* vh);

// Solves several real n x n systems at a time (small_systems.cpp). `hard` marks the systems that are not
// finite or whose pivots are zero, tiny or far apart: their x is not set.
inline constexpr std::int64_t largest_small_system = 32, largest_small_factor = 16, least_small_systems = 4;
void solve_small_systems(Dtype, std::int64_t batch, std::int64_t n, std::int64_t k, const void* a,
                         const void* b, void* x, bool* hard);
// The lower factors of small real matrices, on one thread. `hard` marks those that are not finite or not
// safely positive: their factors are not set.
void cholesky_of_small(Dtype, std::int64_t batch, std::int64_t n, const void* a, void* factors, bool* hard);

}  // namespace tessera::kernels
