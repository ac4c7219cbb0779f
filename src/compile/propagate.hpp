// Layouts for a whole graph: forward propagation happened when the ops were recorded; here wishes of
// consumers travel backwards.
#pragma once
#include "compile/partition.hpp"

namespace tessera {

// A value whose consumers all want it elsewhere (a constraint, an out_sharding, an operand that is split
// differently) is computed there when that moves fewer bytes. Decided from shapes and shardings alone, in
// one fixed order: the same on every rank.
Layouts propagate_backward(const Graph&, const std::vector<std::optional<Sharding>>& root_layouts);

// Whether the layout of the result may be chosen freely: its op is placed by a rule and runs on each
// rank for itself.
bool may_lie_elsewhere(const Node&);

// The cost of the node as placed, and of bringing its result to `target`: bytes that the busiest rank
// receives, and the arithmetic of one rank as the bytes that could move meanwhile. A product that all ranks
// compute whole saves no time by moving nothing.
std::int64_t placement_cost(const Node&, const Placement&, const Sharding& target, const PlaceArgs&);

}  // namespace tessera
