// Sorting one array by another.
#pragma once
#include <utility>

#include "graph/op.hpp"

namespace tessera {

// (keys sorted along the last dim, payload moved the same way); stable. Any dtypes, any shardings; both of
// one shape. A split last dim is sorted where it lies: every rank ends with its own block of the sorted
// lines, and nothing is gathered.
std::pair<Array, Array> sort_by_key(const Array& keys, const Array& payload);

// The positions along the last dim that sort it, int32 (int64 for lines of more than 2^31 - 1).
Array sorted_positions(const Array& keys);

}  // namespace tessera
