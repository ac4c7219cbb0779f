// Reductions of contiguous rows: the inner loop of reduce.cpp.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "types/reduce_kind.hpp"

namespace tessera::kernels {

// out[r] = the reduction of x[r * n .. r * n + n), r < rows. n > 0.
using RowReduceFn = void (*)(const void* x, std::int64_t rows, std::int64_t n, void* out);

// sum prod max min (out has the dtype of x), count_nonzero (out is int64).
RowReduceFn find_row_reduce(ReduceKind, Dtype);

}  // namespace tessera::kernels
