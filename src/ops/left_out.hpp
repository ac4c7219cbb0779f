// Ops that change nothing are left out, except where shapes differ between ranks (an uneven shard_map): an op
// that changes nothing on this rank may change something on another, and all ranks record the same ops.
#pragma once
#include <tessera/array.hpp>
#include "graph/node.hpp"

namespace tessera {

inline bool may_leave_out(const Array& x) { return !x.node()->region || !x.node()->region->uneven; }

}  // namespace tessera
