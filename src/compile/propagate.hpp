// Layouts for a whole graph: forward propagation happened during recording; here the layouts that consumers
// ask for travel backwards.
#pragma once
#include "compile/partition.hpp"
#include "compile/placement_memo.hpp"

namespace tessera {

// Computes a value directly in the layout that all its consumers want (a constraint, an out_sharding, an
// operand that is split differently) if that moves fewer bytes. Decided from shapes and shardings alone, in
// one fixed order: the same on every rank.
Layouts propagate_backward(const Graph&, const std::vector<std::optional<Sharding>>& root_layouts);

// Whether the layout of the result may be chosen freely: the op is placed by a rule and runs without
// communication.
bool has_free_layout(const Node&);

// The cost of the node as placed and of bringing its result to `target`: bytes that the busiest rank
// receives, and the arithmetic of one rank in bytes that could move in that time. Arithmetic counts, so that
// a product is not computed in full by all ranks just because that moves nothing.
std::int64_t placement_cost(const Node&, const Placement&, const Sharding& target, const PlacementArgs&,
                            PlacementMemo&);

}  // namespace tessera
