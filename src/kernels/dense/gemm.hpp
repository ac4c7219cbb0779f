// Local matrix products. Row-major; ld counts elements. Floats and complex go to BLAS, integers wrap, bool
// is any-and.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

namespace tessera::kernels {

// c (m x n) = op(a) (m x k) * op(b) (k x n), or c += ... . transpose_a says that a is stored k x m.
void gemm(Dtype, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const void* a, std::int64_t lda, const void* b, std::int64_t ldb, bool accumulate, void* c,
          std::int64_t ldc);

// `batch` dense products; strides count elements from one matrix to the next, 0 shares the matrix (of an
// operand).
void gemm_batched(Dtype, bool transpose_a, bool transpose_b, std::int64_t batch, std::int64_t m,
                  std::int64_t n, std::int64_t k, const void* a, std::int64_t stride_a, const void* b,
                  std::int64_t stride_b, void* c, std::int64_t stride_c);

}  // namespace tessera::kernels
