// Traced functions: the bodies of branches and loops. Values that they read from outside become ordinary
// operands.
#pragma once
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "compile/graph.hpp"

namespace tessera {

// A function recorded from placeholders to results, which reads nothing else.
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
bool same_field(const FunctionPtr&, const FunctionPtr&);  // whether both are the same graph
std::string field_text(const FunctionPtr&);               // the graph, indented

// The nodes below `roots` that are not outside, inputs first; leaves: the outside values that they read, in
// order of first use.
using IsOutside = std::function<bool(const NodePtr&)>;
Graph cut(const std::vector<Array>& roots, const IsOutside& is_outside);

struct ArrayKeyHash {
  std::size_t operator()(const std::pair<const Node*, int>& key) const {
    return mix(reinterpret_cast<std::uintptr_t>(key.first), static_cast<std::uint64_t>(key.second));
  }
};
using ArrayMap = std::unordered_map<std::pair<const Node*, int>, Array, ArrayKeyHash>;
inline std::pair<const Node*, int> key_of_array(const Array& x) { return {x.node().get(), x.output()}; }

// Records the graph's roots again with other arrays in place of some of its leaves.
std::vector<Array> replayed(const Graph&, ArrayMap values);
// f(arguments), recorded inline.
std::vector<Array> call(const ClosedFunction&, const std::vector<Array>& arguments);

// Functions of common parameters with explicit captures: results[i] = functions[i](parameters...,
// captures...).
struct Closed {
  std::vector<FunctionPtr> functions;
  std::vector<Array> captures;
};
// Loops compute values that do not change between steps once, before they start (outside); branches compute
// them inside.
enum class Invariants { inside, outside };
// Turns into captures: nodes recorded up to the serial `before`, values, and (with Invariants::outside)
// computations that do not depend on the parameters.
Closed close(const std::vector<std::vector<Array>>& results, const std::vector<Array>& parameters,
             std::uint64_t before, Invariants);

// The serial number of the most recently recorded node.
std::uint64_t last_serial();
// A placeholder with x's type, sharding and region.
Array placeholder_like(const Array& x);

// The layouts that a compiled branch or loop requires at its boundary.
std::vector<std::optional<Sharding>> shardings_of(const std::vector<Array>& values);

}  // namespace tessera
