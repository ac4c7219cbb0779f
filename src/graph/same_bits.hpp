// The same bits on every number of ranks: what a ReproducibleScope asks of ops and layouts.
//
// A node that is recorded in the scope is marked. Its rule then places it so that no summed dim is split
// (place_whole_sums), or its op records other nodes instead (OpDef::instead: sums become trees), or the op is
// refused. The mark is part of the graph's key; derivatives and batches of a marked node are recorded in a
// scope.
#pragma once
#include <tessera/ops/reproducible.hpp>

#include <optional>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// A scope in which a node is recorded again: derivatives and batches of a marked node are marked too.
class AsRecorded {
 public:
  explicit AsRecorded(const Node& node) {
    if (node.same_bits) scope_.emplace();
  }

 private:
  std::optional<ReproducibleScope> scope_;
};

// Records the node's op on other operands, for the node's call, and inside or outside of a scope as it was.
// The op that a scope has put in another's place stays: a second replacement would add constants, which a
// closed function does not have among its operands.
std::vector<Array> record_again(const Node&, ParamsPtr, std::vector<Array> inputs);

// Raises the user's error where the op cannot keep the promise for these operands.
void check_same_bits(const OpDef&, const Params&, const std::vector<Array>& inputs, const Outputs& outputs);

// The placement by the op's rule, with the dims unsplit that it sums in floating point: their axes move to
// the dim where that costs least, or are dropped.
Placement place_whole_sums(const Rule&, const PlacementArgs&);

}  // namespace tessera
