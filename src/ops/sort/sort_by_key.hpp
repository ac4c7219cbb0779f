// Sorting one array by another.
#pragma once
#include <utility>

#include "graph/op.hpp"

namespace tessera {

// (keys sorted along the last dim, payload moved with them); stable. Any dtypes, any shardings; both of one
// shape. A split last dim is sorted in its layout: every rank ends with its own block of the sorted lines,
// and nothing is gathered.
std::pair<Array, Array> sort_by_key(const Array& keys, const Array& payload);

// The positions that sort the last dim, int32 (int64 for lines of more than 2^31 - 1).
Array sorted_positions(const Array& keys);

}  // namespace tessera
