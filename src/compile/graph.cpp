#include "compile/graph.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "base/session.hpp"
#include "graph/elementwise_row.hpp"
#include "kernels/visit.hpp"
#include "program/program.hpp"

namespace tessera {
namespace {

std::uint64_t next_visit() {
  static std::uint64_t visit = 0;
  return ++visit;
}

// The vectors of an earlier graph, emptied.
struct Spare {
  Graph graph;
};

bool ends_walk(const Node& node) { return node.is_evaluated() || is_parameter(node); }

// Traverses the graph depth first from each root, without recursion.
class Collector {
 public:
  explicit Collector(std::uint64_t before) : before_(before), visit_(next_visit()) {}

  void add(const Array& root) {
    enter(root);
    while (!stack_.empty()) {
      auto& [array, next] = stack_.back();
      const auto& inputs = array->node()->inputs;
      if (next < inputs.size()) {
        enter(inputs[next++]);
      } else {
        graph.nodes.push_back(array->node());
        stack_.pop_back();
      }
    }
  }
  Graph graph;

 private:
  void enter(const Array& x) {
    Node& node = *x.node();
    if (node.visit == visit_) return;
    node.visit = visit_;
    if (!ends_walk(node) && node.serial > before_) {
      stack_.emplace_back(&x, 0);
      return;
    }
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) graph.leaves.emplace_back(x.node(), i);
  }

  std::uint64_t before_, visit_;
  detail::InlineVector<std::pair<const Array*, std::size_t>, 8> stack_;  // with the index of the next input
};

// Oldest first. The results of a gradient are then in the order of the backward pass: each all-reduce can
// start as soon as its product is computed, and cotangents are freed early.
detail::InlineVector<const Array*, 4> by_age(const std::vector<Array>& arrays) {
  detail::InlineVector<const Array*, 4> sorted;
  for (const auto& x : arrays) sorted.push_back(&x);
  const auto is_older = [](const Array* a, const Array* b) { return a->node()->serial < b->node()->serial; };
  if (!std::is_sorted(sorted.begin(), sorted.end(), is_older))  // a sort allocates
    std::stable_sort(sorted.begin(), sorted.end(), is_older);
  return sorted;
}

// Whether an uncommitted value may stay unevaluated, since its final layout is unknown: beside committed
// results it would be computed a second time, replicated on every rank, for a handle that may be only the
// temporary in eval(device_put(random::normal(...), sharding)). Small ones are computed anyway, so that a
// chain of them (a key per step) does not grow without bound.
bool can_wait(const Node& node) {
  constexpr std::int64_t small_bytes = 64 << 10;
  const auto& type = node.outputs[0].type;
  return node.outputs.size() == 1 && !node.outputs[0].sharding &&
         type.shape.elements() * static_cast<std::int64_t>(itemsize(type.dtype)) > small_bytes;
}
// Whether a node needs all ranks, as uncommitted values do: ranks outside the requested meshes do not take
// part.
bool must_wait(const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [](const Output& output) { return !output.sharding; });
}
bool is_on_a_part(const std::vector<Array>& roots) {
  const auto all = replicated_everywhere().mesh().size();
  return std::all_of(roots.begin(), roots.end(), [&](const Array& root) {
    const auto& sharding = output_of(root).sharding;
    return sharding && !sharding->mesh().is_abstract() && sharding->mesh().size() < all;
  });
}

bool is_among(const Array& x, const std::vector<Array>& arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [&](const Array& other) {
    return other.node() == x.node() && other.output() == x.output();
  });
}

// The known owners of each node: the inputs of the graph's nodes, its list of nodes, and the roots.
using Owners = detail::InlineVector<long, 8>;
Owners owners_inside(const Graph& graph) {
  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (const auto& leaf : graph.leaves) leaf.node()->visit_index = count;
  for (std::uint32_t n = 0; n < count; ++n) graph.nodes[n]->visit_index = n;
  Owners owners(count + 1);
  std::fill(owners.begin(), owners.end(), 1);  // the last entry is shared by all leaves
  for (const auto& node : graph.nodes)
    for (const auto& input : node->inputs) ++owners[input.node()->visit_index];
  for (const auto& root : graph.roots) ++owners[root.node()->visit_index];
  return owners;
}

// Handles that outlive the statement; for ops that are expensive to recompute, also those that do not.
long lasting_owners(const NodePtr& node) {
  const bool is_cheap = node->op != nullptr && elementwise_row(*node->op) != nullptr;
  return node.use_count() - (is_cheap ? static_cast<long>(node->owners_in_expressions) : 0);
}

// Values that a handle outside the graph still holds: their nodes have more owners than the known ones.
std::vector<Array> held_from_outside(const Graph& graph) {
  if (graph.nodes.size() == 1 && graph.nodes[0]->outputs.size() == 1) return {};  // the root itself
  const auto owners = owners_inside(graph);
  detail::InlineVector<bool, 8> is_root(owners.size());
  bool asks_committed = false;
  for (const auto& root : graph.roots) {
    is_root[root.node()->visit_index] = true;
    asks_committed |= output_of(root).sharding.has_value();
  }
  const bool on_a_part = is_on_a_part(graph.roots);
  std::vector<Array> held;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    if (!is_root[n] && on_a_part && must_wait(*node)) continue;
    if (!is_root[n] && asks_committed && can_wait(*node)) continue;
    if (lasting_owners(node) > owners[n] || (is_root[n] && node->outputs.size() > 1))
      for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i)
        if (!node->outputs[static_cast<std::size_t>(i)].deleted) held.emplace_back(node, i);
  }
  return held;
}

}  // namespace

void recycle(Graph&& graph) {
  constexpr std::size_t small = 256;  // a larger graph's memory is released
  if (graph.nodes.size() + graph.leaves.size() + graph.roots.size() > small) return;
  graph.nodes.clear(), graph.leaves.clear(), graph.roots.clear();
  state<Spare>().graph = std::move(graph);
}

Graph collect(const std::vector<Array>& roots, bool keep_alive, std::uint64_t before) {
  check_thread("explain");  // evaluations and traces have checked the thread before
  Collector collector(before);
  collector.graph = std::exchange(state<Spare>().graph, Graph());
  for (const auto* root : by_age(roots)) collector.add(*root);
  Graph graph = std::move(collector.graph);
  graph.roots = roots;
  if (!keep_alive) return graph;
  for (auto& x : held_from_outside(graph))
    if (!is_among(x, roots)) graph.roots.push_back(std::move(x));
  return graph;
}

namespace {

// " = 2.5" for a small constant: its value may be the only difference between two ranks.
std::string value_text(const Output& output) {
  if (!is_small_constant(output)) return {};
  std::ostringstream text;
  text.precision(17);
  kernels::visit_stored(output.type.dtype, [&]<class T>(T) {
    // A buffer may be longer than its elements.
    const auto size = std::min(output.stored->buffer.bytes(),
                               static_cast<std::size_t>(output.type.shape.elements()) * sizeof(T));
    for (std::size_t at = 0; at + sizeof(T) <= size; at += sizeof(T)) {
      T value;
      std::memcpy(&value, output.stored->buffer.data() + at, sizeof value);
      text << (at == 0 ? " = " : " ");
      if constexpr (sizeof(T) == 1)
        text << +value;
      else
        text << value;
    }
  });
  return text.str();
}

class GraphText {
 public:
  explicit GraphText(const Graph& graph) : graph_(graph) {
    for (const auto& leaf : graph.leaves)
      if (leaf.output() == 0) number(*leaf.node());
    for (const auto& node : graph.nodes) number(*node);
  }

  std::string text() const {
    std::string all;
    for (const auto& leaf : graph_.leaves)
      all += name_of(leaf) + " = " + declared(output_of(leaf)) + " parameter" + value_text(output_of(leaf)) +
             content_text(leaf) + "\n";
    for (const auto& node : graph_.nodes) all += line_of(*node);
    return all + "return" + (graph_.roots.empty() ? "" : " ") + listed(graph_.roots) + "\n";
  }

 private:
  void number(const Node& node) { number_.emplace(&node, static_cast<int>(number_.size())); }

  std::string name_of(const Array& x) const {
    return "%" + std::to_string(number_.at(x.node().get())) +
           (x.node()->outputs.size() > 1 ? "." + std::to_string(x.output()) : "");
  }
  std::string listed(const std::vector<Array>& values) const {
    std::string text;
    for (const auto& x : values) text += (text.empty() ? "" : ", ") + name_of(x);
    return text;
  }
  // The place at which data came in, and a checksum that distinguishes them.
  static std::string content_text(const Array& leaf) {
    const auto& stored = output_of(leaf).stored;
    if (!stored || stored->content == 0) return {};
    char digits[20];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(stored->content));
    return " checksum " + std::string(digits) + "  # " + call_text(leaf.node()->called());
  }
  static std::string declared(const Output& output) {
    std::ostringstream text;
    text << short_text(output.type);
    if (output.sharding) text << " " << output.sharding->spec();
    return text.str();
  }
  std::string line_of(const Node& node) const {
    std::string text = "%" + std::to_string(number_.at(&node)) + " =";
    for (const auto& output : node.outputs) text += " " + declared(output);
    text += " " + node.op->name + "(" + listed(node.inputs) + ")";
    if (const auto params = node.params->text(); !params.empty()) text += " {" + params + "}";
    if (const auto* rule = rule_of(*node.op)) text += " by \"" + rule->text.text() + "\"";
    return text + "  # " + site(node.where) + "\n";
  }

  const Graph& graph_;
  std::unordered_map<const Node*, int> number_;
};

}  // namespace

std::string graph_text(const Graph& graph) { return GraphText(graph).text(); }

void verify(const Graph& graph) {
  std::unordered_map<const Node*, bool> defined;
  for (const auto& leaf : graph.leaves) defined[leaf.node().get()] = true;
  for (const auto& node : graph.nodes) {
    for (const auto& input : node->inputs)
      if (!defined[input.node().get()])
        throw InternalError("graph: " + node->op->name + " reads a value that is not defined before it");
    defined[node.get()] = true;
    for (const auto& output : node->outputs)
      if (output.sharding) output.sharding->check_fits(output.type.shape, node->op->name.c_str());
  }
}

}  // namespace tessera
