#include "compile/graph.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "base/session.hpp"
#include "kernels/visit.hpp"

namespace tessera {
namespace {

std::uint64_t next_visit() {
  static std::uint64_t visit = 0;
  return ++visit;
}

bool is_small_constant(const Output& output) {
  return output.stored && !output.sharding && output.stored->buffer && output.stored->buffer.bytes() <= 16;
}

bool ends_walk(const Node& node) { return node.is_evaluated() || is_parameter(node); }

}  // namespace

Graph collect(const std::vector<Array>& roots, bool keep_alive, std::uint64_t before) {
  check_thread("explain");  // evaluations and traces have asked before
  Graph graph;
  const auto visit = next_visit();
  struct Frame {
    const Array* array;
    std::size_t next = 0;
  };
  std::vector<Frame> stack;
  const auto enter = [&](const Array& x) {
    Node& node = *x.node();
    if (node.visit == visit) return;
    node.visit = visit;
    if (ends_walk(node) || node.serial <= before) {
      for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) graph.leaves.emplace_back(x.node(), i);
      return;
    }
    stack.push_back({&x});
  };
  // Oldest first. The results of a gradient then stand in the order of the backward pass: each all-reduce
  // can start as soon as its product is there, and cotangents die early.
  std::vector<const Array*> by_age;
  for (const auto& root : roots) by_age.push_back(&root);
  std::stable_sort(by_age.begin(), by_age.end(),
                   [](const Array* a, const Array* b) { return a->node()->serial < b->node()->serial; });
  for (const auto* root : by_age) {
    enter(*root);
    while (!stack.empty()) {
      auto& frame = stack.back();
      const auto& inputs = frame.array->node()->inputs;
      if (frame.next < inputs.size()) {
        enter(inputs[frame.next++]);
      } else {
        graph.nodes.push_back(frame.array->node());
        stack.pop_back();
      }
    }
  }
  graph.roots = roots;
  if (keep_alive) {
    // A node is held from outside when it has more owners than the inputs of the graph's nodes, the list
    // above and the roots.
    std::unordered_map<const Node*, long> inside;
    for (const auto& node : graph.nodes) {
      ++inside[node.get()];
      for (const auto& input : node->inputs) ++inside[input.node().get()];
    }
    for (const auto& root : graph.roots) ++inside[root.node().get()];
    // Nobody knows where an uncommitted value will be needed: beside committed results it would be computed
    // a second time, whole, on every rank, for a handle that is perhaps but the temporary in
    // eval(device_put(random::normal(...), sharding)). Small ones are computed all the same, lest a chain of
    // them (a key per step) grows for ever.
    bool asks_committed = false;
    for (const auto& root : roots) asks_committed |= output_of(root).sharding.has_value();
    const auto can_wait = [&](const Node& node) {
      const auto& type = node.outputs[0].type;
      return asks_committed && node.outputs.size() == 1 && !node.outputs[0].sharding &&
             type.shape.elements() * static_cast<std::int64_t>(itemsize(type.dtype)) > 64 << 10;
    };
    std::vector<Array> held;
    for (const auto& node : graph.nodes) {
      bool is_root = false;
      for (const auto& root : roots) is_root |= root.node() == node;
      if (!is_root && can_wait(*node)) continue;
      if (node.use_count() > inside[node.get()] || (is_root && node->outputs.size() > 1))
        for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i) held.emplace_back(node, i);
    }
    for (auto& x : held) {
      bool known = false;
      for (const auto& root : roots) known |= root.node() == x.node() && root.output() == x.output();
      if (!known) graph.roots.push_back(std::move(x));
    }
  }
  return graph;
}

GraphKey key_of(const Graph& graph) {
  GraphKey key{0x243f6a8885a308d3ull, 0x13198a2e03707344ull};
  const auto add = [&key](std::uint64_t value) {
    key.a = mix(key.a, value);
    key.b = (key.b ^ value) * 0x9fb21c651e98df25ull;
    key.b ^= key.b >> 29;
  };
  const auto add_agreed = [&](std::uint64_t value) {
    add(value);
    key.agreed = mix(key.agreed, value);
  };
  const auto add_output = [&](const Output& output, bool agreed) {
    agreed ? add_agreed(field_hash(output.type.shape)) : add(field_hash(output.type.shape));
    add_agreed(static_cast<std::uint64_t>(output.type.dtype.code) * 2 + output.type.weak);
    add_agreed(output.sharding ? output.sharding->hash() : 1);
  };
  std::uint32_t number = 0;
  for (const auto& leaf : graph.leaves) {
    if (leaf.output() == 0) leaf.node()->visit_index = number;
    ++number;
    const auto& output = output_of(leaf);
    const bool differs = leaf.node()->region && leaf.node()->region->uneven;
    add_output(output, !differs);
    if (output.stored) {
      add_agreed(output.stored->layout.hash());
      // Small constants that every rank is supposed to hold alike: a scalar that differs is caught here, not
      // in the results.
      if (is_small_constant(output)) {
        std::uint64_t bits[2] = {};
        std::memcpy(bits, output.stored->buffer.data(), output.stored->buffer.bytes());
        key.agreed = mix(mix(key.agreed, bits[0]), bits[1]);
      }
    }
  }
  for (const auto& node : graph.nodes) {
    node->visit_index = number;
    number += static_cast<std::uint32_t>(node->outputs.size());
    const bool differs = node->region && node->region->uneven;  // shapes differ from rank to rank there
    add_agreed(field_hash(node->op->name));
    add(node->params->hash());
    if (!differs) key.agreed = mix(key.agreed, node->params->agreed_hash());
    for (const auto& input : node->inputs)
      add_agreed(input.node()->visit_index + static_cast<std::uint32_t>(input.output()));
    for (const auto& output : node->outputs) add_output(output, !differs);
  }
  for (const auto& root : graph.roots)
    add_agreed(root.node()->visit_index + static_cast<std::uint32_t>(root.output()) + 0x10000u);
  return key;
}

namespace {

// " = 2.5" of a small constant: where two ranks disagree it may be all that differs.
std::string value_text(const Output& output) {
  if (!is_small_constant(output)) return {};
  std::ostringstream text;
  text.precision(17);
  kernels::visit(output.type.dtype, [&]<class T>(T) {
    for (std::size_t at = 0; at + sizeof(T) <= output.stored->buffer.bytes(); at += sizeof(T)) {
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

}  // namespace

std::string graph_text(const Graph& graph) {
  std::ostringstream text;
  std::unordered_map<const Node*, int> number;
  int next = 0;
  const auto sharding_text = [](const Output& output) {
    std::ostringstream out;
    if (output.sharding) out << " " << output.sharding->spec();
    return out.str();
  };
  for (const auto& leaf : graph.leaves) {
    if (leaf.output() == 0) number[leaf.node().get()] = next++;
    const auto& output = output_of(leaf);
    text << "%" << number[leaf.node().get()]
         << (leaf.node()->outputs.size() > 1 ? "." + std::to_string(leaf.output()) : "") << " = "
         << to_string(output.type) << sharding_text(output) << " parameter" << value_text(output) << "\n";
  }
  for (const auto& node : graph.nodes) {
    number[node.get()] = next;
    text << "%" << next++ << " =";
    for (const auto& output : node->outputs) text << " " << to_string(output.type) << sharding_text(output);
    text << " " << node->op->name << "(";
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const auto& input = node->inputs[i];
      text << (i ? ", " : "") << "%" << number[input.node().get()];
      if (input.node()->outputs.size() > 1) text << "." << input.output();
    }
    text << ")";
    if (const auto params = node->params->text(); !params.empty()) text << " {" << params << "}";
    if (const auto* rule = rule_of(*node->op)) text << " by \"" << rule->text.text() << "\"";
    text << "  # " << site(node->where) << "\n";
  }
  text << "return";
  for (std::size_t i = 0; i < graph.roots.size(); ++i) {
    const auto& root = graph.roots[i];
    text << (i ? ", " : " ") << "%" << number[root.node().get()];
    if (root.node()->outputs.size() > 1) text << "." << root.output();
  }
  text << "\n";
  return text.str();
}

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
