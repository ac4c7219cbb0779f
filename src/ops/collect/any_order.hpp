// Flattening for reductions that do not depend on the order of elements, such as sorting.
#pragma once
#include "graph/op.hpp"

namespace tessera {

// x flattened, in an order that needs no communication: every element stays on its rank. Only if blocks of
// several dims are uneven, boxes are exchanged.
Array in_any_order(const Array& x);

}  // namespace tessera
