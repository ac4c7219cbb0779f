// Reductions, arg-reductions and scans of one rank's dense row-major block.
//
// Sums of floats are blocked: the rounding error grows with the logarithm of the number of terms, and the
// result is reproducible (it does not depend on the number of threads).
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "types/reduce_kind.hpp"

namespace tessera::kernels {

// sum prod max min: out has dtype `in`; any all: bool; count_nonzero: int32. Max and min of no elements give
// the identity below, and NaN propagates. sum of bool is any, prod of bool is all: callers cast first to
// count. Complex max/min: lexicographic. axes: distinct, in any order; `out` is dense row-major of the
// remaining dims.
void reduce(ReduceKind, Dtype in, const void* data, const Shape& shape, const std::vector<int>& axes,
            void* out);
Dtype reduce_result(ReduceKind, Dtype in);

// The largest (smallest) number of each column of dense planes x (outer x rows x columns) of float32 or
// float64; NaN is ignored. -infinity (infinity) where a column has no number. rows > 0.
struct ColumnsShape {
  std::int64_t outer, rows, columns;
};
void extreme_numbers_of_columns(bool max, Dtype, const std::byte* x, ColumnsShape, std::byte* out);

// Writes n neutral elements of sum, prod, max, min, any, all, count_nonzero or logsumexp (max of floats:
// -inf, of integers: the least). The dtype is the reduction result's.
void fill_identity(ReduceKind, Dtype, void* out, std::int64_t n);

// out[i] = out[i] combined with in[i], for partial results of `reduce`, in the dtype of its result.
void combine(ReduceKind, Dtype, const void* in, void* out, std::int64_t n);

// Position along `axis` (plus index_offset) of the largest or smallest element: the first of equals, and the
// first NaN if there is one. Outputs are dense over the remaining dims. The axis must not be empty.
void arg_reduce(bool max, Dtype, const void* data, const Shape&, int axis, std::int64_t index_offset,
                void* values_out /*may be null*/, std::int64_t* index_out);

// Sums and products of a line: as a loop adds them, or by vectors, which round floats in another order (and
// whose error grows more slowly). Integers are the same.
enum class ScanOrder { one_by_one, by_vectors };

// Running sum, prod, max, min or logsumexp (floats) along an axis; out may be data. before: initial values of
// the lines, dense over the remaining dims (not for logsumexp); nullptr: none.
void cumulative(ReduceKind, bool reverse, Dtype, const void* data, const Shape&, int axis, void* out,
                const void* before = nullptr, ScanOrder = ScanOrder::one_by_one);

}  // namespace tessera::kernels
