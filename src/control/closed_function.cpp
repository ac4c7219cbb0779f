#include "control/closed_function.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/same_bits.hpp"

namespace tessera {
namespace {

bool is_cheap(const Node& node) {
  if (node.inputs.empty()) return !node.outputs[0].sharding;  // zeros, arange: created where they are used
  return is_alias(*node.op) || is_broadcast(*node.op);
}

}  // namespace

Graph cut(const std::vector<Array>& roots, const IsOutside& is_outside) {
  Graph graph;
  graph.roots = roots;
  std::unordered_set<const Node*> entered;
  std::unordered_set<std::pair<const Node*, int>, ArrayKeyHash> known;
  struct Frame {
    NodePtr node;
    std::size_t next = 0;
  };
  std::vector<Frame> stack;
  const auto enter = [&](const Array& x) {
    if (is_outside(x.node())) {
      if (known.insert(key_of_array(x)).second) graph.leaves.push_back(x);
    } else if (entered.insert(x.node().get()).second) {
      stack.push_back({x.node()});
    }
  };
  for (const auto& root : roots) {
    enter(root);
    while (!stack.empty()) {
      const NodePtr node = stack.back().node;
      if (stack.back().next < node->inputs.size()) {
        enter(node->inputs[stack.back().next++]);
      } else {
        graph.nodes.push_back(node);
        stack.pop_back();
      }
    }
  }
  return graph;
}

ClosedFunction::ClosedFunction(std::vector<Array> parameters, std::vector<Array> results) {
  graph_ = cut(results, [](const NodePtr& node) { return is_parameter(*node); });
  for (const auto& leaf : graph_.leaves)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const Array& p) { return p.node() == leaf.node(); }))
      throw ArgumentError("the value " + describe(leaf) +
                          " was made while another branch or loop body was recorded and exists only there; "
                          "return it from that body");
  graph_.leaves = std::move(parameters);
  key_ = key_of(graph_);
}

bool same_field(const FunctionPtr& a, const FunctionPtr& b) {
  return a == b || (a->key().hash == b->key().hash && GraphForm(a->graph()).is_of(b->graph()));
}

std::string field_text(const FunctionPtr& f) {
  std::string text = "\n    ";
  const auto lines = graph_text(f->graph());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i];
    if (lines[i] == '\n' && i + 1 < lines.size()) text += "    ";
  }
  return text;
}

std::vector<Array> replayed(const Graph& graph, ArrayMap values) {
  const auto find = [&](const Array& x) {
    const auto found = values.find(key_of_array(x));
    return found == values.end() ? x : found->second;
  };
  for (const auto& node : graph.nodes) {
    std::vector<Array> inputs;
    bool changed = false;
    for (const auto& x : node->inputs) {
      inputs.push_back(find(x));
      changed |= inputs.back().node() != x.node() || inputs.back().output() != x.output();
    }
    if (!changed) continue;
    const auto outputs = record_again(*node, node->params, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) values[{node.get(), static_cast<int>(i)}] = outputs[i];
  }
  std::vector<Array> results;
  for (const auto& root : graph.roots) results.push_back(find(root));
  return results;
}

std::vector<Array> call(const ClosedFunction& f, const std::vector<Array>& arguments) {
  ArrayMap values;
  for (std::size_t i = 0; i < arguments.size(); ++i) values[key_of_array(f.parameters()[i])] = arguments[i];
  return replayed(f.graph(), std::move(values));
}

Closed close(const std::vector<std::vector<Array>>& results, const std::vector<Array>& parameters,
             std::uint64_t before, Invariants invariants) {
  std::vector<Array> roots;
  for (const auto& list : results) roots.insert(roots.end(), list.begin(), list.end());
  std::unordered_map<const Node*, bool> outside;
  std::unordered_set<const Node*> depends;
  for (const auto& p : parameters) depends.insert(p.node().get());
  const Graph all = cut(roots, [&](const NodePtr& node) {
    return node->serial <= before || node->is_evaluated() || is_parameter(*node);
  });
  for (const auto& leaf : all.leaves) outside[leaf.node().get()] = true;
  const auto lies_in = [](RegionPtr inner, const RegionPtr& outer) {
    while (inner && inner != outer) inner = inner->parent;
    return inner == outer;
  };
  RegionPtr own_region;  // of the loop or branch; mapped functions that its body calls have others
  for (const auto& list : {roots, parameters})
    for (const auto& x : list)
      if (lies_in(x.node()->region, own_region)) own_region = x.node()->region;
  for (const auto& node : all.nodes) {
    bool reads_parameter = false, only_outside = true;
    for (const auto& x : node->inputs) {
      reads_parameter |= depends.contains(x.node().get());
      only_outside &= outside.at(x.node().get()) && !depends.contains(x.node().get());
    }
    if (reads_parameter) depends.insert(node.get());
    // An entry into a mapped function is no work, and the operands of one op must be in the same region.
    const bool is_entrance = node->op->region != nullptr && !node->inputs.empty() && only_outside;
    const bool is_hoisted = invariants == Invariants::outside && !reads_parameter && !is_cheap(*node);
    outside[node.get()] = (is_entrance || is_hoisted) && lies_in(own_region, node->region);
  }
  const Graph inside = cut(roots, [&](const NodePtr& node) { return outside.at(node.get()); });
  Closed closed;
  ArrayMap values;
  auto all_parameters = parameters;
  for (const auto& leaf : inside.leaves) {
    if (std::any_of(parameters.begin(), parameters.end(),
                    [&](const Array& p) { return p.node() == leaf.node(); }))
      continue;
    closed.captures.push_back(leaf);
    all_parameters.push_back(placeholder_like(leaf));
    values[key_of_array(leaf)] = all_parameters.back();
  }
  const auto of_operands = replayed(inside, std::move(values));
  std::size_t next = 0;
  for (const auto& list : results) {
    const auto first = of_operands.begin() + static_cast<std::ptrdiff_t>(next);
    next += list.size();
    closed.functions.push_back(std::make_shared<const ClosedFunction>(
        all_parameters, std::vector<Array>(first, of_operands.begin() + static_cast<std::ptrdiff_t>(next))));
  }
  return closed;
}

std::uint64_t last_serial() {
  return make_placeholder({Shape{}, int32}, std::nullopt, nullptr, 0).node()->serial;
}

Array placeholder_like(const Array& x) {
  const OnBehalfOf same_place(x.node()->called());
  const auto& output = output_of(x);
  return make_placeholder(output.type, output.sharding, x.node()->region, output.varying);
}

std::vector<std::optional<Sharding>> shardings_of(const std::vector<Array>& values) {
  std::vector<std::optional<Sharding>> shardings;
  for (const auto& x : values) shardings.push_back(output_of(x).sharding);
  return shardings;
}

}  // namespace tessera
