// Bytes that the functions of lapack.hpp allocate besides operands and results: column-major copies and
// LAPACK's workspace, for all threads that work at the same time. The copy of a badly scaled triangle is not
// counted.
#pragma once
#include "kernels/factor/lapack.hpp"

namespace tessera::kernels {

std::int64_t solve_workspace(Dtype, std::int64_t batch, std::int64_t n, std::int64_t k);
std::int64_t lu_workspace(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n);
std::int64_t cholesky_workspace(Dtype, std::int64_t batch, std::int64_t n);
std::int64_t triangular_workspace(Dtype, std::int64_t batch, std::int64_t n, TriangleUse);
std::int64_t qr_workspace(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool complete);
std::int64_t eigh_workspace(Dtype, std::int64_t batch, std::int64_t n, bool vectors);
std::int64_t svd_workspace(Dtype, std::int64_t batch, std::int64_t m, std::int64_t n, bool full,
                           bool vectors);

}  // namespace tessera::kernels
