// Equality of graphs: first by hash, then by value.
#include <algorithm>
#include <cstring>

#include "compile/graph.hpp"
#include "compile/held_values.hpp"

namespace tessera {
namespace {

// Numbers the leaves, then the outputs of the nodes, in the nodes' scratch fields.
void number_values(const Graph& graph) {
  std::uint32_t number = 0;
  for (const auto& leaf : graph.leaves) {
    if (leaf.output() == 0) leaf.node()->visit_index = number;
    ++number;
  }
  for (const auto& node : graph.nodes) {
    node->visit_index = number;
    number += static_cast<std::uint32_t>(node->outputs.size());
  }
}
std::uint32_t number_of(const Array& x) {
  return x.node()->visit_index + static_cast<std::uint32_t>(x.output());
}

class KeyMaker {
 public:
  GraphKey key{0x243f6a8885a308d3u, 0x13198a2e03707344u};

  explicit KeyMaker(const Graph& graph) { find_differing(graph); }

  void add_leaf(const Array& leaf) {
    const auto& output = output_of(leaf);
    const bool differs = may_differ(*leaf.node());
    key.may_differ |= differs;
    add_output(output, differs);
    if (!output.stored) return;
    add(output.stored->layout.hash());
    if (output.stored->failure) return;
    // Hashes the values of small constants, which should be equal on all ranks: a scalar that differs is
    // found here, not in the results.
    if (differs || !is_small_constant(output)) return;
    std::uint64_t bits[2] = {};
    std::memcpy(bits, output.stored->buffer.data(), output.stored->buffer.bytes());
    key.agreed = mix(mix(key.agreed, bits[0]), bits[1]);
  }
  void add_node(const Node& node) {
    const bool differs = may_differ(node);
    key.may_differ |= differs;
    add(field_hash(node.op->name) + (node.same_bits ? 1 : 0));
    key.hash = mix(key.hash, node.params->hash());
    if (!differs) key.agreed = mix(key.agreed, node.params->agreed_hash());
    for (const auto& input : node.inputs) add(number_of(input));
    for (const auto& output : node.outputs) add_output(output, differs);
  }
  void add(std::uint64_t value) {
    key.hash = mix(key.hash, value);
    key.agreed = mix(key.agreed, value);
  }

 private:
  // Regions with uneven blocks have shapes that differ from rank to rank.
  static bool is_uneven(const Node& node) { return node.region && node.region->uneven; }
  // So have the constants that are made of these shapes: what nothing else reads.
  bool may_differ(const Node& node) const {
    return is_uneven(node) || (node.visit_index < read_.size() && read_[node.visit_index] == Read::inside);
  }
  void find_differing(const Graph& graph) {
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const auto& n) { return is_uneven(*n); }))
      return;
    const auto& last = *graph.nodes.back();
    read_.resize(last.visit_index + last.outputs.size());
    for (const auto& root : graph.roots) read_[root.node()->visit_index] = Read::outside;
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      const Node& node = *graph.nodes[n];
      const bool is_inside = may_differ(node) && node.op->region == nullptr;
      for (const auto& input : node.inputs) {
        auto& read = read_[input.node()->visit_index];
        if (read != Read::outside) read = is_inside ? Read::inside : Read::outside;
      }
    }
  }

  void add_output(const Output& output, bool differs) {
    const auto shape = field_hash(output.type.shape);
    key.hash = mix(key.hash, shape);
    if (!differs) key.agreed = mix(key.agreed, shape);
    add(static_cast<std::uint64_t>(output.type.dtype.code) * 2 + output.type.weak);
    add(output.sharding ? output.sharding->hash() : 1);
  }

  enum class Read : char { never, inside, outside };  // of regions with uneven blocks
  std::vector<Read> read_;  // by number of a node's first value; empty: none is inside
};

bool same_region(const RegionPtr& a, const RegionPtr& b) {
  if (a == b) return true;
  return a && b && a->manual_axes == b->manual_axes && a->mesh == b->mesh &&
         same_region(a->parent, b->parent);
}

bool same_reads(const std::vector<std::uint32_t>& numbers, const std::vector<Array>& values) {
  return std::equal(numbers.begin(), numbers.end(), values.begin(), values.end(),
                    [](std::uint32_t number, const Array& x) { return number == number_of(x); });
}

}  // namespace

bool is_small_constant(const Output& output) {
  return output.stored && !output.sharding && output.stored->buffer && output.stored->buffer.bytes() <= 16;
}

GraphKey key_of(const Graph& graph, std::size_t asked, std::uint64_t& held) {
  number_values(graph);
  KeyMaker maker(graph);
  for (const auto& leaf : graph.leaves) maker.add_leaf(leaf);
  for (const auto& node : graph.nodes) maker.add_node(*node);
  held = 0;
  for (std::size_t i = 0; i < graph.roots.size(); ++i) {
    const std::uint64_t number = number_of(graph.roots[i]) + 0x10000u;
    if (i < asked)
      maker.add(number);
    else
      held = mix(held, number);
  }
  maker.key.hash = mix(maker.key.hash, held);
  maker.key.content = content_of(graph.leaves);
  return maker.key;
}

GraphKey key_of(const Graph& graph) {
  std::uint64_t held = 0;
  return key_of(graph, graph.roots.size(), held);
}

ValueNumbers held_values(const Graph& graph, std::size_t asked) {
  number_values(graph);
  ValueNumbers numbers;
  for (std::size_t i = asked; i < graph.roots.size(); ++i) numbers.push_back(number_of(graph.roots[i]));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void hold(Graph& graph, std::size_t asked, const ValueNumbers& held) {
  graph.roots.erase(graph.roots.begin() + static_cast<std::ptrdiff_t>(asked), graph.roots.end());
  auto number = static_cast<std::uint32_t>(graph.leaves.size());
  for (const auto& node : graph.nodes)
    for (int i = 0; i < static_cast<int>(node->outputs.size()); ++i, ++number)
      if (std::binary_search(held.begin(), held.end(), number)) graph.roots.emplace_back(node, i);
}

std::uint64_t content_of(const std::vector<Array>& leaves) {
  std::uint64_t content = 0, place = 0;
  for (const auto& leaf : leaves) {
    ++place;
    const auto& stored = output_of(leaf).stored;
    if (stored && stored->content != 0) content = mix(content, stored->content + place);
  }
  return content;
}

GraphForm::GraphForm(const Graph& graph) {
  number_values(graph);
  for (const auto& leaf : graph.leaves) {
    const auto& output = output_of(leaf);
    leaves_.push_back({output.type, output.sharding, std::nullopt, leaf.node()->region});
    if (output.stored) leaves_.back().stored = output.stored->layout;
  }
  for (const auto& node : graph.nodes) {
    auto& op = ops_.emplace_back(Op{node->op, node->params, node->region, node->same_bits, {}, {}});
    for (const auto& x : node->inputs) op.reads.push_back(number_of(x));
    for (const auto& output : node->outputs) op.outputs.push_back({output.type, output.sharding});
  }
  for (const auto& root : graph.roots) roots_.push_back(number_of(root));
}

bool GraphForm::Leaf::is_of(const Array& leaf) const {
  const auto& output = output_of(leaf);
  return type == output.type && sharding == output.sharding &&
         stored.has_value() == output.stored.has_value() && (!stored || *stored == output.stored->layout) &&
         same_region(region, leaf.node()->region);
}

bool GraphForm::Op::is_of(const Node& node) const {
  return op == node.op && same_bits == node.same_bits && same_params(params, node.params) &&
         same_region(region, node.region) && same_reads(reads, node.inputs) &&
         std::equal(
             outputs.begin(), outputs.end(), node.outputs.begin(), node.outputs.end(),
             [](const Value& a, const Output& b) { return a.type == b.type && a.sharding == b.sharding; });
}

bool GraphForm::is_of(const Graph& graph) const {
  if (leaves_.size() != graph.leaves.size() || ops_.size() != graph.nodes.size()) return false;
  number_values(graph);
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (!leaves_[i].is_of(graph.leaves[i])) return false;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (!ops_[i].is_of(*graph.nodes[i])) return false;
  return same_reads(roots_, graph.roots);
}

}  // namespace tessera
