// The library's own matrix product, for operands that BLAS does not support or is slow on: integers, bool,
// and small or oddly strided floating-point matrices.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

namespace tessera::kernels {

// An element of a matrix is at data + (row * row_stride + column * column_stride); a transposed matrix has
// its strides swapped.
struct MatrixView {
  const void* data;
  std::int64_t row_stride, column_stride;
};

// c += a * b; c is row-major.
void gemm_own(Dtype, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, void* c,
              std::int64_t ldc);

// c = a * b for `batch` dense row-major matrices each, of floats or complex numbers, with n <= 4 columns in
// b. Strides count elements between matrices. Sums have the order of gemm_own.
struct SmallProducts {
  std::int64_t batch, m, n, k;
  const void* a;
  std::int64_t a_stride;
  const void* b;
  std::int64_t b_stride;
  void* c;
};
constexpr std::int64_t small_products_columns = 4;
void multiply_small(Dtype, const SmallProducts&);

}  // namespace tessera::kernels
