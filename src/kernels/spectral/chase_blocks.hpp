// The steps of a band's chase (band_chase.hpp) on its blocks, in vectors of the CPU's widest instruction set
// and in few passes over a block. Real types, column-major. The rows of a block, and of the vectors, are a
// multiple of 8.
#pragma once
#include <cstdint>

namespace tessera::kernels {

inline constexpr std::int64_t chase_block_rows = 8;

// y (rows) = scale a x
template <class T> void chase_multiply(std::int64_t rows, std::int64_t columns, T scale, const T* a,
                                       std::int64_t ld, const T* x, T* y);
// a := H (a - y x^T) with H = I - tau v v^T; y and x are both null for H a alone.
template <class T> void chase_reflect(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld,
                                      const T* y, const T* x, T tau, const T* v);
// a -= y x^T
template <class T>
void chase_subtract(std::int64_t rows, std::int64_t columns, T* a, std::int64_t ld, const T* y, const T* x);
// a := H a H for the lower triangle of a symmetric matrix. `work` (rows) is overwritten.
template <class T>
void chase_reflect_both(std::int64_t rows, T* a, std::int64_t ld, T tau, const T* v, T* work);

}  // namespace tessera::kernels
