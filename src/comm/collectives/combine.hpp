// out[i] = a[i] (op) b[i]: the arithmetic of reductions. Compiled for speed in every build type.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>

#include "types/reduce_kind.hpp"

namespace tessera::comm {

// InternalError for what has no meaning: max, min and bits of complex numbers, any and all of anything but
// bool and integers, bits of floats; and for kinds of kernels only.
void require_reducible(ReduceKind, Dtype);

// out may be a or b. max and min of floats are NaN when either side is, as NumPy's. bool: sum is or, prod is
// and.
void combine(ReduceKind, Dtype, const void* a, const void* b, void* out, std::int64_t count);

}  // namespace tessera::comm
