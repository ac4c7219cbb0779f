// Sums and products of a ReproducibleScope: trees over global positions (kernels/reduce/tree.hpp).
#pragma once
#include "ops/reduce/reduction.hpp"

namespace tessera {

// The ops recorded instead of a sum or product of floats: one dim after the other, the longest first. Nothing
// for other dtypes, whose sums are exact.
std::vector<Array> tree_instead(const OpDef& tree, const ReduceParams&, const Array& x);

// The record of a tree op. `own`: the record of the op that it replaces, for types, gradient and batches.
OpDef tree_record(OpDef own, const char* name, ReduceKind);

// The part of such a sum that an op computes: the nodes of a rank's block, the root from all nodes, or
// everything on one rank.
enum class TreeStep { none, nodes, root, whole };
TreeStep tree_step(const OpDef&);
// The reduction of steps `nodes` and `whole`; nullopt for other ops.
std::optional<Reduction> tree_reduction_of(const OpDef&, const Params&, const Shape& whole);

}  // namespace tessera
