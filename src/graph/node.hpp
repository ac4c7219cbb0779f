// Nodes of the recorded graph. A node is immutable except for the slots of its outputs' values.
#pragma once
#include <tessera/array.hpp>
#include <tessera/detail/inline_vector.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "base/call.hpp"
#include "graph/params.hpp"
#include "mesh/axes.hpp"
#include "types/buffer.hpp"

namespace tessera {

struct OpDef;

// Shape and dtype of a value. A weak type yields to the dtype of a strongly typed operand.
struct Type {
  Shape shape;
  Dtype dtype;
  bool weak = false;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type&);  // float32[8,4]: errors, explain

// The inside of a shard_map: values have the shapes of one rank's blocks, and the planner must not use the
// manual axes of the mesh. Values of an outer region enter an inner one as every rank's own copy; values of
// unrelated regions cannot be combined.
struct Region {
  Mesh mesh;
  MeshAxes manual_axes;  // ascending axis numbers, including the parent's
  bool check_varying = true;
  bool uneven = false;                   // shapes differ between ranks
  int position = 0;                      // in the mesh (row-major), of the rank whose block shapes are used
  std::shared_ptr<const Region> parent;  // the enclosing region; nullptr: the global world
};
using RegionPtr = std::shared_ptr<const Region>;
// The manual axes of a region; none outside of regions.
inline const MeshAxes& manual_axes_of(const RegionPtr& region) {
  return region ? region->manual_axes : no_axes;
}

struct FailedValue;  // graph/failed_value.hpp

// A computed value: this rank's block (empty on a rank without one).
struct Stored {
  Sharding layout;
  Buffer buffer;
  Buffer seen = {};  // the result's memory, referenced by spans: not overwritten while the node exists
  std::shared_ptr<const FailedValue> failure = nullptr;  // set if there is no value, on the ranks that failed
  // Hash of data from the program's memory, declared the same on every rank; 0: nothing to compare.
  std::uint64_t content = 0;
};

struct Output {
  Type type;
  std::optional<Sharding> sharding;  // nullopt: uncommitted, computed in the layout of its consumers
  std::uint64_t varying =
      0;  // in a region: bit a is set if ranks along mesh axis a may hold different values
  std::optional<Stored> stored;
  bool deleted = false;
};

using Outputs = detail::InlineVector<Output, 1>;  // most ops have one

struct Node {
  const OpDef* op = nullptr;
  ParamsPtr params;
  std::vector<Array> inputs;
  Outputs outputs;
  RegionPtr region;            // nullptr: the global world
  const char* call = nullptr;  // the user's call, of which the op may be only a part
  std::source_location where;
  std::uint64_t serial = 0;  // recording order on this rank
  std::uint32_t pending =
      0;  // approximate number of unevaluated nodes below: a long chain is computed before it grows further
  // Owners that end with their statement (detail::InExpression).
  std::uint32_t owners_in_expressions = 0;
  bool traced = false;     // depends on a transformation's placeholder: inputs are kept after evaluation
  bool same_bits = false;  // recorded in a ReproducibleScope (graph/same_bits.hpp)
  bool has_placeholder = false;     // depends on a placeholder without a value: cannot be evaluated
  mutable std::uint64_t visit = 0;  // scratch of the current graph traversal
  mutable std::uint32_t visit_index = 0;
  std::uint32_t readers = 0;  // nodes that have it as an input: a deleted value stays until they are gone

  std::shared_ptr<Node> next_released;  // links a chain of nodes during its release
  ~Node();                              // releases long chains without recursion and without allocating
  UserCall called() const { return {call, where}; }
  bool is_evaluated() const { return !outputs.empty() && outputs[0].stored.has_value(); }
};
using NodePtr = std::shared_ptr<Node>;
void drop_inputs(Node&);  // of a node that has its value

// "file.cpp:12"
std::string site(const std::source_location&);
// "float32[8,4] P('x', None) over Mesh('x': 4) from train.cpp:12"
std::string describe(const Array&);

inline const Output& output_of(const Array& x) { return x.node()->outputs[x.output()]; }
inline Output& mutable_output_of(const Array& x) { return x.node()->outputs[x.output()]; }
inline Type type_of(const Array& x) { return output_of(x).type; }

}  // namespace tessera
