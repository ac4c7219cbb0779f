// Graph -> Program: decides where every value is computed, and which values move.
#pragma once
#include <unordered_map>

#include "compile/graph.hpp"
#include "program/builder.hpp"

namespace tessera {

// Layouts that replace the recorded ones (jit propagates in both directions); one per output of a node.
using Layouts = std::unordered_map<const Node*, std::vector<Sharding>>;

// Program inputs are the graph's leaves in order; outputs its roots, each in its sharding (uncommitted: as
// root_layouts says, else replicated everywhere). leaf_layouts: layouts of uncommitted leaves, if not
// replicated everywhere.
Program partition(const Graph&, const Layouts& layouts = {},
                  const std::vector<std::optional<Sharding>>& root_layouts = {},
                  const std::vector<std::optional<Sharding>>& leaf_layouts = {});

}  // namespace tessera
