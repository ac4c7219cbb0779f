// For reductions of all elements that do not ask in which order they stand: sorting, for one.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// All elements in one dim, each on the rank where it lies; where blocks of several dims are uneven, boxes
// are exchanged.
Array in_any_order(const Array& x);

}  // namespace tessera
