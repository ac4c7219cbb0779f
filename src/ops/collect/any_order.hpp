// Flattening for reductions that do not depend on the order of elements, such as sorting.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// All elements in one dim, each on the rank that holds it; if blocks of several dims are uneven, boxes are
// exchanged.
Array in_any_order(const Array& x);

}  // namespace tessera
