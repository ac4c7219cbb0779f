// Reductions of contiguous rows: the inner loop of reduce.cpp.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "types/reduce_kind.hpp"

namespace tessera::kernels {

// out[r] = the reduction of x[r * n .. r * n + n), r < rows. n > 0.
using RowReduceFn = void (*)(const void* x, std::int64_t rows, std::int64_t n, void* out);

// Elements of a block of a row: a row's blocks are merged pairwise, and the last block has up to twice as
// many.
constexpr std::int64_t row_block(Dtype dtype) { return 8192 / static_cast<std::int64_t>(itemsize(dtype)); }

// sum prod max min (out has the dtype of x), count_nonzero (out is int64).
RowReduceFn find_row_reduce(ReduceKind, Dtype);
// counts[j] = how many of x[r * step + j], r < rows, are not 0, j < columns. rows > 0.
using ColumnCountFn = void (*)(const void* x, std::int64_t step, std::int64_t rows, std::int64_t columns,
                               std::int64_t* counts);
// nullptr for complex numbers and halves.
ColumnCountFn find_column_count(Dtype);
// The sums of the rows' squares (float32, float64), with the bits of squares that are summed afterwards.
void sum_squares_of_rows(Dtype, const void* x, std::int64_t rows, std::int64_t n, void* out);
// The sum of conj(a) b over n complex numbers (complex64, complex128), n > 0.
void sum_conjugate_products(Dtype, const void* a, const void* b, std::int64_t n, void* out);
// The largest (or smallest) element of a row (float32, float64) that is not NaN; -infinity (or infinity) if
// there is none.
void extreme_number_of_row(bool max, Dtype, const void* x, std::int64_t n, void* out);

}  // namespace tessera::kernels
