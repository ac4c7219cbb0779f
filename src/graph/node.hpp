// Nodes of the recorded graph. A node is immutable, but for the slots that receive the values of its outputs.
#pragma once
#include <tessera/array.hpp>

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

// Shape and dtype of a value. A weak type gives way to the dtype of a strongly typed operand.
struct Type {
  Shape shape;
  Dtype dtype;
  bool weak = false;
  friend bool operator==(const Type&, const Type&) = default;
};
std::string to_string(const Type&);  // float32[8,4]: errors, explain

// The inside of a shard_map: values have the shapes of one rank's blocks, and the manual axes of the mesh
// are out of the planner's reach. Values of an outer region enter an inner one as every rank's own copy;
// values of unrelated regions cannot meet.
struct Region {
  Mesh mesh;
  MeshAxes manual_axes;  // ascending axis numbers, those of the parent included
  bool check_varying = true;
  bool uneven = false;                   // ranks see different shapes
  int position = 0;                      // in the mesh (row-major): whose blocks' shapes are seen here
  std::shared_ptr<const Region> parent;  // around this one; nullptr: the global world
};
using RegionPtr = std::shared_ptr<const Region>;
// The axes of a region; none outside of regions.
inline const MeshAxes& manual_axes_of(const RegionPtr& region) {
  return region ? region->manual_axes : no_axes;
}

struct FailedValue;  // graph/failed_value.hpp

// A computed value: this rank's block (empty on a rank that holds none).
struct Stored {
  Sharding layout;
  Buffer buffer;
  Buffer seen = {};  // the same memory, for spans: it stays as it is as long as the node does
  std::shared_ptr<const FailedValue> failure = nullptr;  // it has no value; known to the ranks that failed
  // Hash of data from the program's memory, declared the same on every rank; 0: nothing to compare.
  std::uint64_t content = 0;
};

struct Output {
  Type type;
  std::optional<Sharding> sharding;  // nullopt: uncommitted, computed in the layout of its consumers
  std::uint64_t varying =
      0;  // in a region: bit a is set when ranks along mesh axis a may hold different values
  std::optional<Stored> stored;
  bool deleted = false;
};

struct Node {
  const OpDef* op = nullptr;
  ParamsPtr params;
  std::vector<Array> inputs;
  std::vector<Output> outputs;
  RegionPtr region;            // nullptr: the global world
  const char* call = nullptr;  // what the user called, and where; the op may be a part of that
  std::source_location where;
  std::uint64_t serial = 0;  // recording order on this rank
  std::uint32_t pending =
      0;  // about how many nodes without a value lie below: a long chain is computed before it grows further
  // Owners that end with the statement they stand in (detail::InExpression).
  std::uint32_t owners_in_expressions = 0;
  bool traced = false;  // depends on a transformation's placeholder: inputs are kept after evaluation
  bool has_placeholder = false;     // depends on a placeholder without a value: cannot be evaluated
  mutable std::uint64_t visit = 0;  // scratch of the graph walk that runs
  mutable std::uint32_t visit_index = 0;

  std::shared_ptr<Node> next_released;  // while the last owners of a chain let go of it
  ~Node();                              // releases long chains without recursion and without memory
  UserCall called() const { return {call, where}; }
  bool is_evaluated() const { return !outputs.empty() && outputs[0].stored.has_value(); }
};
using NodePtr = std::shared_ptr<Node>;

// "file.cpp:12"
std::string site(const std::source_location&);
// "float32[8,4] P('x', None) over Mesh('x': 4) from train.cpp:12"
std::string describe(const Array&);

inline const Output& output_of(const Array& x) { return x.node()->outputs[x.output()]; }
inline Output& mutable_output_of(const Array& x) { return x.node()->outputs[x.output()]; }
inline Type type_of(const Array& x) { return output_of(x).type; }

}  // namespace tessera
