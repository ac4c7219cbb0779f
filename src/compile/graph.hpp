// A recorded graph prepared for compilation: the nodes that a set of values needs, in an executable order.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct Graph {
  std::vector<NodePtr> nodes;  // unevaluated, inputs first
  std::vector<Array> leaves;   // evaluated values and placeholders that the nodes read, in order of first use
  std::vector<Array> roots;    // the requested values
};

// All nodes below `roots` without a value. Placeholders are leaves. With keep_alive, values that a user's
// handle still holds become roots too, since they would otherwise be computed again. Nodes recorded up to
// `before` count as leaves: values that a loop's body reads from outside.
Graph collect(const std::vector<Array>& roots, bool keep_alive, std::uint64_t before = 0);
// Ends the use of a graph. The next one takes its vectors, so that a small graph allocates nothing.
void recycle(Graph&&);

// A key that is the same for equal graphs. Unequal graphs may share it: GraphForm distinguishes them.
struct GraphKey {
  std::uint64_t hash = 0;     // over everything that a GraphForm compares
  std::uint64_t agreed = 0;   // over everything that must agree on all ranks: excludes shapes that may differ
  bool may_differ = false;    // there are such shapes
  std::uint64_t content = 0;  // hash of the data of the leaves (content_of); 0: none
};
GraphKey key_of(const Graph&);
// The checksum of leaves with data declared the same on every rank (Stored::content); 0 if there are none.
std::uint64_t content_of(const std::vector<Array>& leaves);

// The properties that make two graphs equal: ops, params, types, shardings and edges, by value; not the
// values of leaves. Keeps no array alive.
class GraphForm {
 public:
  explicit GraphForm(const Graph&);
  bool is_of(const Graph&) const;

 private:
  struct Leaf {
    Type type;
    std::optional<Sharding> sharding, stored;
    RegionPtr region;
    bool is_of(const Array&) const;
  };
  struct Value {
    Type type;
    std::optional<Sharding> sharding;
  };
  struct Op {
    const OpDef* op;
    ParamsPtr params;
    RegionPtr region;
    bool same_bits;
    std::vector<std::uint32_t> reads;  // numbers of values: leaves first
    std::vector<Value> outputs;
    bool is_of(const Node&) const;
  };
  std::vector<Leaf> leaves_;
  std::vector<Op> ops_;
  std::vector<std::uint32_t> roots_;
};

// A scalar or another small value that every rank holds.
bool is_small_constant(const Output&);

// One line per node: the recorded program (text before partitioning).
std::string graph_text(const Graph&);
void verify(const Graph&);

}  // namespace tessera
