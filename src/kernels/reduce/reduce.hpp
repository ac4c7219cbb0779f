// Reductions, arg-reductions and scans of one rank's dense row-major block.
//
// Sums of floats are blocked: the rounding error grows with the logarithm of the number of terms, and the
// result is the same on every run (it does not depend on the number of threads).
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::kernels {

// sum prod max min: out has dtype `in`; any all: bool; count_nonzero: int32. Max and min of nothing give the
// identity below, and NaN wins. sum of bool is any, prod of bool is all: the caller casts first when it
// wants a count. Complex max/min: lexicographic. axes: distinct, in any order; `out` is dense row-major of
// the remaining dims.
void reduce(std::string_view op, Dtype in, const void* data, const Shape& shape, const std::vector<int>& axes,
            void* out);
Dtype reduce_result(std::string_view op, Dtype in);

// The neutral element of sum, prod, max, min, any, all, count_nonzero, logsumexp n times (max of floats:
// -inf, of integers: the least). dtype is the reduction's result dtype.
void fill_identity(std::string_view op, Dtype dtype, void* out, std::int64_t n);

// out[i] = out[i] op in[i], for partial results of `reduce` (dtype: the result dtype).
void combine(std::string_view op, Dtype dtype, const void* in, void* out, std::int64_t n);

// Position along `axis` (plus index_offset) of the largest or smallest element: the first of equals, and the
// first NaN if there is one. Outputs are dense over the remaining dims. The axis is not empty.
void arg_reduce(bool max, Dtype, const void* data, const Shape&, int axis, std::int64_t index_offset,
                void* values_out /*may be null*/, std::int64_t* index_out);

// Running sum, prod, max, min or logsumexp (floats) along an axis; out may be data.
void cumulative(std::string_view op, bool reverse, Dtype, const void* data, const Shape&, int axis,
                void* out);

}  // namespace tessera::kernels
