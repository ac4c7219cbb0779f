// Products of real floating-point matrices that pack both operands block by block, and pass each part of the
// result to last_pass while it is in the cache.
//
//   c (m x n)        n, along the vectors             for i0: for l: pack a[i0, l]
//        +-----+-----+-----+                             for j0: pack b[l, j0]
//     i0 | .. j0 ..  |     |   <- last_pass, 64 rows        for i: for j: tile += a[i, l] b[l, j]
//        +-----+-----+-----+      of block j0
//
// The order in which an element is summed depends on k alone: not on m, n, or the element's position.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>

#include "kernels/dense/gemm_own.hpp"

namespace tessera::kernels {

// Work beside a product.
struct Beside {
  // Called for each complete part of the result; the parts cover it. Several threads may call at once, for
  // different parts.
  std::function<void(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns)>
      last_pass = {};
  std::function<void()> meanwhile = {};  // called now and then, from one thread
};

// Whether packed_product supports this dtype on this CPU and is as fast as BLAS. (With AVX-512 the OpenBLAS
// of Debian 12 takes 1.13 times as long for float64, 1.03 times for float32; with AVX2 OpenBLAS is faster.)
bool has_packed_product(Dtype);
// Whether the product is also large enough to make packing worthwhile.
bool worth_packing(Dtype, std::int64_t m, std::int64_t n, std::int64_t k);

// The most bytes that packed_product allocates: 3.4 MiB of float64 for the largest product.
std::int64_t packing_bytes(Dtype, std::int64_t m, std::int64_t k);

// c (m x n) = a b, or c += a b. c is row-major; the operands have any strides.
struct StridedProduct {
  Dtype dtype;
  std::int64_t m, n, k;
  MatrixView a, b;
  bool accumulate;
  void* c;
  std::int64_t ldc;
  // Whether only columns up to i + diagonal of row i are wanted; the others are left undefined.
  bool is_lower = false;
  std::int64_t diagonal = 0;
};
// float32 and float64; k > 0.
void packed_product(const StridedProduct&, const Beside& = {});
// The elements of k that are added up before the sum is added to c.
constexpr std::int64_t deepest_part = 384;
constexpr std::int64_t product_depth(std::int64_t k) {
  const auto parts = k <= deepest_part ? 1 : (k + deepest_part - 1) / deepest_part;
  const auto even = ((k + parts - 1) / parts + 15) / 16 * 16;
  return even < deepest_part ? even : deepest_part;
}
// The same bits without packing: for few multiplications.
void plain_product(const StridedProduct&);

}  // namespace tessera::kernels
