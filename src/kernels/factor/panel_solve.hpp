// The triangular system of a Cholesky panel in vector registers, for real types:
//
//   X L^T = B in place of B (m x n),   L lower triangular, n up to a few hundred, column-major
//
// The bits of a row of X depend on that row of B, on L and on n alone. BLAS solves systems of this width at a
// third of the rate of its products.
#pragma once
#include <cstdint>

namespace tessera::kernels {

void solve_transposed_right(std::int64_t m, std::int64_t n, const float* l, std::int64_t ldl, float* b,
                            std::int64_t ldb);
void solve_transposed_right(std::int64_t m, std::int64_t n, const double* l, std::int64_t ldl, double* b,
                            std::int64_t ldb);

}  // namespace tessera::kernels
