// Sorting one array by another.
#pragma once
#include <utility>

#include "graph/op.hpp"

namespace tessera {

// The meaning of the keys. `sides`: uint8 of 0, 1, 2 for payload of 4 or 8 bytes before, equal to and after
// one of its own elements, in any order within a side, so that the sorted payload is a result, too.
enum class Keys { any, sides };
struct SortByKeyParams {
  Keys keys = Keys::any;
  template <class V> void fields(V&& visit) const { visit("keys", keys); }
};

// (keys sorted along the last dim, payload moved with them); stable. Any dtypes, any shardings; both of one
// shape. A split last dim is sorted in its layout: every rank ends with its own block of the sorted lines,
// and nothing is gathered.
std::pair<Array, Array> sort_by_key(const Array& keys, const Array& payload, Keys kind = Keys::any);

// The positions that sort the last dim, int32 (int64 for lines of more than 2^31 - 1).
Array sorted_positions(const Array& keys);

}  // namespace tessera
