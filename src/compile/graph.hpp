// A recorded graph, cut out for compilation: the nodes that a set of values needs, in an order in which they
// can run.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct Graph {
  std::vector<NodePtr> nodes;  // unevaluated, inputs first
  std::vector<Array> leaves;   // evaluated values and placeholders that the nodes read, in order of first use
  std::vector<Array> roots;    // what is asked for
};

// Everything below `roots` that has no value yet. Placeholders are leaves. With keep_alive, values that a
// user's handle still holds become roots too: they would be computed again otherwise.
// Nodes recorded up to `before` count as leaves: what a loop's body reads from outside.
Graph collect(const std::vector<Array>& roots, bool keep_alive, std::uint64_t before = 0);

// The same for equal graphs: ops, params, types, shardings and how they are wired; not the values of leaves.
struct GraphKey {
  std::uint64_t a = 0, b = 0;
  std::uint64_t agreed =
      0;  // what all ranks must have in common: leaves out shapes that may differ from rank to rank
  friend bool operator==(const GraphKey&, const GraphKey&) = default;
};
struct GraphKeyHash {
  std::size_t operator()(const GraphKey& key) const { return key.a; }
};
GraphKey key_of(const Graph&);

// One line per node: the recorded program (text before partitioning).
std::string graph_text(const Graph&);
void verify(const Graph&);

}  // namespace tessera
