// Splitting or joining one dim in groups of equal size, for any sharding: only elements that cross a block
// boundary are sent.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// result[stride * i] = x[i] along dim, zeros between: n elements become stride * (n - 1) + 1.
Array dilate(const Array& x, int dim, std::int64_t stride);
// result[i] = x[i / n] along dim.
Array repeat_each(const Array& x, int dim, std::int64_t n);
// result[i] = x[n * i] + ... + x[n * i + n - 1] along dim, whose size is a multiple of n.
Array sum_groups(const Array& x, int dim, std::int64_t n);

}  // namespace tessera
