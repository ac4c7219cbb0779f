// Local matrix products. Row-major; ld counts elements. Floats and complex numbers use BLAS, or
// packed_product if it is faster; integers wrap, bool is or of ands.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "kernels/dense/packed_product.hpp"

namespace tessera::kernels {

// c (m x n) = op(a) (m x k) * op(b) (k x n), or c += ... . transpose_a says that a is stored k x m.
void gemm(Dtype, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const void* a, std::int64_t lda, const void* b, std::int64_t ldb, bool accumulate, void* c,
          std::int64_t ldc, const Beside& = {});

// `batch` dense products; strides count elements from one matrix to the next, stride 0 shares the operand.
// The last pass sees the results as one matrix of batch * m rows.
void gemm_batched(Dtype, bool transpose_a, bool transpose_b, std::int64_t batch, std::int64_t m,
                  std::int64_t n, std::int64_t k, const void* a, std::int64_t stride_a, const void* b,
                  std::int64_t stride_b, void* c, std::int64_t stride_c, const Beside& = {});

// A product whose sums follow an order that depends on k and the dtype alone: not on m, n, strides, where an
// element is, threads, or the processor, among those with fused multiply-adds. Never by BLAS.
struct OrderedProduct {
  Dtype dtype;
  std::int64_t m, n, k;
  MatrixView a, b;
  bool accumulate;
  void* c;
  std::int64_t ldc;
};
void ordered_product(const OrderedProduct&, const Beside& = {});
// As gemm_batched.
void ordered_product_batched(Dtype, bool transpose_a, bool transpose_b, std::int64_t batch, std::int64_t m,
                             std::int64_t n, std::int64_t k, const void* a, const void* b, void* c,
                             const Beside& = {});

// The `Beside` of a block at (row, column), with coordinates relative to it. Refers to `whole`.
Beside beside_block(const Beside& whole, std::int64_t row, std::int64_t column);

}  // namespace tessera::kernels
