// Local matrix products. Row-major; ld counts elements. Floats and complex numbers use BLAS, or
// packed_product if it is faster; integers wrap, bool is or of ands.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "kernels/dense/packed_product.hpp"

namespace tessera::kernels {

// An operand in memory. Transposed: its columns are what is stored as rows.
struct StoredMatrix {
  const void* data;
  std::int64_t ld;
  bool transposed = false;
};
// c (m x n) = a (m x k) * b (k x n), or c += a * b.
struct MatrixProduct {
  Dtype dtype;
  std::int64_t m, n, k;
  StoredMatrix a, b;
  void* c;
  std::int64_t ldc;
  bool accumulate = false;
};
void gemm(const MatrixProduct&, const Beside& = {});

// Dense matrices, one per product. The stride counts elements from one to the next; 0: one for all.
struct StoredMatrices {
  const void* data;
  std::int64_t stride;
  bool transposed = false;
};
// `batch` products into dense matrices, one behind the other in c.
struct BatchedProduct {
  Dtype dtype;
  std::int64_t batch, m, n, k;
  StoredMatrices a, b;
  void* c;
  std::int64_t at_a_time = 0;  // of k, in a product in order: each as a product of its own; 0: all
};
// The last pass sees the results as one matrix of batch * m rows.
void gemm_batched(const BatchedProduct&, const Beside& = {});

// Products whose sums follow an order that depends on k alone: not on m, n, strides, where an
// element is, threads, or the processor, among those with fused multiply-adds. Never by BLAS.
void ordered_product(const StridedProduct&, const Beside& = {});
void ordered_product_batched(const BatchedProduct&, const Beside& = {});

// The `Beside` of a block at (row, column), with coordinates relative to it. Refers to `whole`.
Beside beside_block(const Beside& whole, std::int64_t row, std::int64_t column);

}  // namespace tessera::kernels
