// Reductions of contiguous rows: the inner loop of reduce.cpp.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <string_view>

namespace tessera::kernels {

// out[r] = op of x[r * n .. r * n + n), r < rows. n > 0.
using RowReduceFn = void (*)(const void* x, std::int64_t rows, std::int64_t n, void* out);

// op: sum prod max min (out has the dtype of x), count_nonzero (out is int64).
RowReduceFn find_row_reduce(std::string_view op, Dtype);

}  // namespace tessera::kernels
