// Whole products of real floating-point matrices: both operands are packed, block by block, and every part of
// the result is handed on while it is in the cache.
//
//   c (m x n)        n, along the vectors             for i0: for l: pack a[i0, l]
//        +-----+-----+-----+                             for j0: pack b[l, j0]
//     i0 | .. j0 ..  |     |   <- last_pass, 64 rows        for i: for j: tile += a[i, l] b[l, j]
//        +-----+-----+-----+      of block j0
//
// An element is summed in an order that depends on k alone: not on m, n, or where the element is.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>

#include "kernels/dense/gemm_own.hpp"

namespace tessera::kernels {

// Work beside a product.
struct Beside {
  // Called for parts of the result that are complete; together they are all of it. From several threads at
  // once, for different parts.
  std::function<void(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns)>
      last_pass = {};
  std::function<void()> meanwhile = {};  // called now and then, from one thread
};

// Whether it is there for this type on this CPU, and as fast as BLAS. (With AVX-512 the OpenBLAS of Debian 12
// takes 1.13 times as long for float64, 1.03 times for float32; with AVX2 it is the faster one.)
bool has_packed_product(Dtype);
// Whether packing is worth it, too.
bool worth_packing(Dtype, std::int64_t m, std::int64_t n, std::int64_t k);

// It holds no more than that beside the operands: 3.4 MiB of float64 for the largest.
std::int64_t packing_bytes(Dtype, std::int64_t m, std::int64_t k);

// c = a b, or c += a b; c is row-major. float32 and float64; k > 0.
void packed_product(Dtype, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                    bool accumulate, void* c, std::int64_t ldc, const Beside& = {});

}  // namespace tessera::kernels
