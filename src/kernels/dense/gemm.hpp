// Local matrix products. Row-major; ld counts elements. Floats and complex go to BLAS, or where that is
// faster to packed_product; integers wrap, bool is any-and.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "kernels/dense/packed_product.hpp"

namespace tessera::kernels {

// c (m x n) = op(a) (m x k) * op(b) (k x n), or c += ... . transpose_a says that a is stored k x m.
void gemm(Dtype, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const void* a, std::int64_t lda, const void* b, std::int64_t ldb, bool accumulate, void* c,
          std::int64_t ldc, const Beside& = {});

// `batch` dense products; strides count elements from one matrix to the next, 0 shares the matrix (of an
// operand). For the last pass the results are one matrix of batch * m rows.
void gemm_batched(Dtype, bool transpose_a, bool transpose_b, std::int64_t batch, std::int64_t m,
                  std::int64_t n, std::int64_t k, const void* a, std::int64_t stride_a, const void* b,
                  std::int64_t stride_b, void* c, std::int64_t stride_c, const Beside& = {});

// `whole`, told by the product of a block that begins there. It refers to `whole`.
Beside beside_block(const Beside& whole, std::int64_t row, std::int64_t column);

}  // namespace tessera::kernels
