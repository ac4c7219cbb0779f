// Functions that were traced: the bodies of branches and loops. What such a function reads from outside is
// an operand like its others.
#pragma once
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "compile/graph.hpp"

namespace tessera {

// Recorded from placeholders to results; reads nothing else.
class ClosedFunction {
 public:
  ClosedFunction(std::vector<Array> parameters, std::vector<Array> results);
  const std::vector<Array>& parameters() const { return graph_.leaves; }
  const std::vector<Array>& results() const { return graph_.roots; }
  const Graph& graph() const { return graph_; }
  const GraphKey& key() const { return key_; }

 private:
  Graph graph_;
  GraphKey key_;
};
using FunctionPtr = std::shared_ptr<const ClosedFunction>;

inline std::uint64_t field_hash(const FunctionPtr& f) { return f->key().hash; }
bool same_field(const FunctionPtr&, const FunctionPtr&);  // the same graph
std::string field_text(const FunctionPtr&);               // the graph, indented

// The nodes below `roots` down to what `is_outside` says, inputs first; leaves: the outside values that they
// read, in order of first use.
using IsOutside = std::function<bool(const NodePtr&)>;
Graph cut(const std::vector<Array>& roots, const IsOutside& is_outside);

struct ArrayKeyHash {
  std::size_t operator()(const std::pair<const Node*, int>& key) const {
    return mix(reinterpret_cast<std::uintptr_t>(key.first), static_cast<std::uint64_t>(key.second));
  }
};
using ArrayMap = std::unordered_map<std::pair<const Node*, int>, Array, ArrayKeyHash>;
inline std::pair<const Node*, int> key_of_array(const Array& x) { return {x.node().get(), x.output()}; }

// The graph's roots, recorded anew with other arrays in the place of some of its leaves.
std::vector<Array> replayed(const Graph&, ArrayMap values);
// f(arguments), recorded in line.
std::vector<Array> call(const ClosedFunction&, const std::vector<Array>& arguments);

// One or several functions of the same parameters with explicit captures: results[i] =
// functions[i](parameters..., captures...).
struct Closed {
  std::vector<FunctionPtr> functions;
  std::vector<Array> captures;
};
// Loops compute once, before they start, what does not change from step to step; branches keep their work
// inside.
enum class Invariants { inside, outside };
// Everything that was recorded up to the serial `before`, values, and whatever does not depend on the
// parameters become captures.
Closed close(const std::vector<std::vector<Array>>& results, const std::vector<Array>& parameters,
             std::uint64_t before, Invariants);

// The serial number of what is recorded last.
std::uint64_t last_serial();
// A placeholder of x's kind.
Array placeholder_like(const Array& x);

// The layouts that a compiled branch or loop sets around its parts.
std::vector<std::optional<Sharding>> shardings_of(const std::vector<Array>& values);

}  // namespace tessera
