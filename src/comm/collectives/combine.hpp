// out[i] = a[i] (op) b[i]: the arithmetic of reductions. Compiled for speed in every build type.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "types/reduce_kind.hpp"

namespace tessera::comm {

// InternalError for combinations without a meaning: max, min and bit operations on complex numbers, any and
// all on anything but bool and integers, bit operations on floats; and for kinds that only kernels have.
void require_reducible(ReduceKind, Dtype);

// out may be a or b. max and min of floats are NaN if either side is, as in NumPy. On bool, sum is `or` and
// prod is `and`.
void combine(ReduceKind, Dtype, const void* a, const void* b, void* out, std::int64_t count);

}  // namespace tessera::comm
