#include "compile/partition.hpp"

#include <algorithm>

#include "compile/propagate.hpp"
#include "graph/elementwise_row.hpp"

namespace tessera {
namespace {

// One way of computing a node. Committed nodes have one; an uncommitted node has one per layout that its
// consumers ask for, or one per mesh if it has several outputs.
struct Version {
  std::optional<Sharding> wanted;  // sharding of output 0, for uncommitted nodes
  Placement placement;
  std::vector<int> values;  // values of the outputs, once emitted
};

class Partitioner {
 public:
  Partitioner(const Graph& graph, const Layouts& layouts) : graph_(graph), layouts_(layouts) {}

  Program run(const std::vector<std::optional<Sharding>>& root_layouts,
              const std::vector<std::optional<Sharding>>& leaf_layouts) {
    index_nodes();
    std::vector<Sharding> wanted;
    for (std::size_t i = 0; i < graph_.roots.size(); ++i) {
      const auto& root = graph_.roots[i];
      const bool given = i < root_layouts.size() && root_layouts[i];
      const auto sharding = sharding_of_value(root);
      wanted.push_back(given ? *root_layouts[i] : sharding ? *sharding : replicated_everywhere());
      demand(root, wanted.back());
    }
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) place_node(n);
    add_leaves(leaf_layouts);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (auto& version : versions_[n]) emit(*graph_.nodes[n], version);
    for (std::size_t i = 0; i < graph_.roots.size(); ++i) {
      builder_.serve(graph_.roots[i].node()->op, graph_.roots[i].node()->called());
      builder_.program().outputs.push_back(get(graph_.roots[i], wanted[i]));
    }
    return std::move(builder_.program());
  }

 private:
  std::optional<Sharding> sharding_of_value(const Array& x) const {
    if (const auto found = layouts_.find(x.node().get()); found != layouts_.end())
      return found->second[x.output()];
    return output_of(x).sharding;
  }

  void index_nodes() {
    versions_.resize(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) number_[graph_.nodes[n].get()] = n;
    for (const auto& node : graph_.nodes)
      for (const auto& input : node->inputs) ++uses_[{input.node().get(), input.output()}];
    for (const auto& root : graph_.roots)
      // Counts a root as read twice, so that its terms are always combined.
      uses_[{root.node().get(), root.output()}] += 2;
  }

  // Records that a consumer needs x in this layout. An uncommitted node is computed once per requested
  // layout, which costs no communication. A node with several outputs is computed once per mesh: singular
  // vectors of two computations may differ in sign, and U of one does not match V of the other.
  void demand(const Array& x, const Sharding& layout) {
    const auto found = number_.find(x.node().get());
    if (found == number_.end() || sharding_of_value(x)) return;
    const int ndim = x.ndim();
    std::optional<Sharding> wanted = layout;
    if (x.output() != 0) wanted = Sharding::replicated(layout.mesh());
    auto& versions = versions_[found->second];
    const bool belong_together = x.node()->outputs.size() > 1;
    for (auto& version : versions) {
      if (belong_together && version.wanted->mesh() == wanted->mesh()) {
        if (x.output() == 0) version.wanted = std::move(wanted);
        return;
      }
      if (same_layout(*version.wanted, *wanted, x.output() != 0 ? 0 : ndim)) return;
    }
    versions.push_back({std::move(wanted), {}, {}});
  }

  void place_node(std::size_t n) {
    const Node& node = *graph_.nodes[n];
    std::vector<Type> in, out;
    std::vector<std::optional<Sharding>> shardings;
    for (const auto& x : node.inputs) in.push_back(type_of(x)), shardings.push_back(sharding_of_value(x));
    for (const auto& o : node.outputs) out.push_back(o.type);
    const auto& fixed = manual_axes_of(node.inputs.empty() ? node.region : node.inputs[0].node()->region);
    auto& versions = versions_[n];
    const bool committed = sharding_of_value(Array(graph_.nodes[n], 0)).has_value();
    if (committed) {
      auto mesh = unify_meshes(node.inputs, shardings);
      if (!mesh) mesh = node.op->commit(*node.params);
      versions = {Version{std::nullopt,
                          memo_.place(*node.op, {in, out, shardings, *node.params, *mesh, fixed, std::nullopt,
                                                 node.same_bits}),
                          {}}};
      prefer_wanted(graph_.nodes[n], versions[0],
                    {in, out, shardings, *node.params, *mesh, fixed, std::nullopt, node.same_bits});
    } else {
      for (auto& version : versions)
        version.placement = memo_.place(*node.op, {in, out, shardings, *node.params, version.wanted->mesh(),
                                                   fixed, version.wanted, node.same_bits});
    }
    for (const auto& version : versions)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        demand(node.inputs[i], version.placement.inputs[i]);
  }

  // Computes directly into the layout that jit chose (or that was recorded before jit chose another one for
  // an operand) if that moves or computes no more than forward placement and a reshard of the result.
  void prefer_wanted(const NodePtr& shared, Version& version, PlacementArgs args) {
    const Node& node = *shared;
    if (!layouts_.contains(&node) && !has_free_layout(node)) return;
    const Sharding target = *sharding_of_value(Array(shared, 0));
    const bool in_place =
        same_layout(version.placement.outputs[0], target, node.outputs[0].type.shape.ndim());
    if (in_place && (version.placement.partial_axes.empty() || !layouts_.contains(&node))) return;
    args.wanted = target;
    auto backward = memo_.place(*node.op, args);
    if (placement_cost(node, backward, target, args, memo_) <=
        placement_cost(node, version.placement, target, args, memo_))
      version.placement = std::move(backward);
  }

  void add_leaves(const std::vector<std::optional<Sharding>>& given) {
    for (std::size_t i = 0; i < graph_.leaves.size(); ++i) {
      const auto& leaf = graph_.leaves[i];
      const auto& output = output_of(leaf);
      const auto sharding = sharding_of_value(leaf);
      const Sharding layout = output.stored                  ? output.stored->layout
                              : sharding                     ? *sharding
                              : i < given.size() && given[i] ? *given[i]
                                                             : replicated_everywhere();
      leaf_values_[{leaf.node().get(), leaf.output()}] =
          builder_.add_input(output.type, layout, leaf.node()->region, output.stored && !output.sharding);
    }
  }

  int get(const Array& x, const Sharding& layout) {
    const int ndim = x.ndim();
    if (const auto leaf = leaf_values_.find({x.node().get(), x.output()}); leaf != leaf_values_.end())
      return builder_.reshard(leaf->second, layout);
    const auto& versions = versions_[number_.at(x.node().get())];
    for (const auto& version : versions)
      if (same_layout(builder_.value(version.values[x.output()]).layout, layout, ndim))
        return builder_.reshard(version.values[x.output()], layout);
    if (widens_half(*x.node())) return widened_there(*x.node(), layout);
    return builder_.reshard(versions.front().values[x.output()], layout);
  }

  static bool widens_half(const Node& node) {
    const auto* row = elementwise_row(*node.op);
    return row != nullptr && row->kernel == nullptr && !row->is_broadcast &&
           is_half(node.inputs[0].dtype()) && node.outputs[0].type.dtype == float32;
  }
  // Reshards a half before it is widened: half the bytes, and one move for all consumers of the widened
  // value.
  int widened_there(const Node& cast, const Sharding& layout) {
    const int narrow = get(cast.inputs[0], layout);
    return builder_.kernel(*cast.op, cast.params, {narrow}, {cast.outputs[0].type}, {layout})[0];
  }

  // The unreduced form of an input, if the op may work on terms: the op is linear in it, no other node reads
  // the sum, and the terms are in the layout that the op needs. -1 otherwise.
  int get_partial(const Array& x, const Sharding& layout) {
    if (leaf_values_.contains({x.node().get(), x.output()}) || uses_[{x.node().get(), x.output()}] != 1)
      return -1;
    const int v = versions_[number_.at(x.node().get())].front().values[x.output()];
    const auto& value = builder_.value(v);
    if (value.partial_axes.empty() || value.reduce_kind != ReduceKind::sum ||
        !same_layout(value.layout, layout, x.ndim()))
      return -1;
    return v;
  }

  static bool splits_over(const Sharding& layout, int ndim, const MeshAxes& axes) {
    for (const auto& dim : layout.dim_axes(ndim))
      for (const int a : dim)
        if (std::find(axes.begin(), axes.end(), a) != axes.end()) return true;
    return false;
  }

  // The inputs to pass as terms; empty if there are none.
  std::vector<int> linear_terms(const Node& node, const Placement& placement, MeshAxes& axes) {
    const Linear linear = node.op->linear;
    if (linear == Linear::no || placement.reduce_kind != ReduceKind::sum) return {};
    const std::size_t candidates = linear == Linear::in_first ? 1 : node.inputs.size();
    std::vector<int> terms(node.inputs.size(), -1);
    std::size_t count = 0;
    for (std::size_t i = 0; i < candidates; ++i) {
      terms[i] = get_partial(node.inputs[i], placement.inputs[i]);
      if (terms[i] < 0) continue;
      const auto& own = builder_.value(terms[i]).partial_axes;
      if (count > 0 && own != axes) return {};
      axes = own;
      ++count;
    }
    for (const int a : axes)  // the op itself sums over the axis: the ranks' terms are combined first
      if (std::find(placement.partial_axes.begin(), placement.partial_axes.end(), a) !=
          placement.partial_axes.end())
        return {};
    // Inside a mapped function an operand that differs from rank to rank cannot be applied to terms:
    // sum(x)*y is not sum(x*y).
    for (std::size_t i = 0; i < terms.size(); ++i)
      for (const int a : axes)
        if (terms[i] < 0 && (output_of(node.inputs[i]).varying >> a & 1) != 0) return {};
    if (count != (linear == Linear::in_either ? 1 : candidates)) return {};
    if (lowering(*node.op) != nullptr) return terms;  // a reshard also combines terms
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (splits_over(placement.inputs[i], node.inputs[i].ndim(), axes)) return {};
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (splits_over(placement.outputs[i], node.outputs[i].type.shape.ndim(), axes)) return {};
    return terms;
  }

  void emit(const Node& node, Version& version) {
    builder_.serve(node.op, node.called(), &version.placement);
    MeshAxes term_axes;
    const auto terms = linear_terms(node, version.placement, term_axes);
    std::vector<int> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(!terms.empty() && terms[i] >= 0 ? terms[i]
                                                       : get(node.inputs[i], version.placement.inputs[i]));
    std::vector<Type> out;
    for (const auto& o : node.outputs) out.push_back(o.type);
    if (const auto* lower = lowering(*node.op)) {
      version.values = lower->write(builder_, node, inputs);
    } else if (is_alias(*node.op)) {
      version.values = {builder_.alias(inputs[0], out[0], version.placement.outputs[0])};
    } else if (const auto* communicating = std::get_if<Communicating>(&node.op->runs)) {
      version.values = emit_communicating(*communicating, node, version, inputs, out);
    } else {
      version.values = builder_.kernel(*node.op, node.params, inputs, out, version.placement.outputs);
    }
    auto partial = version.placement.partial_axes;
    if (!terms.empty() && lowering(*node.op) == nullptr)
      partial.insert(partial.end(), term_axes.begin(), term_axes.end());
    for (const int v : version.values) {
      builder_.set_region(v, node.region);
      if (!partial.empty()) builder_.set_partial(v, partial, version.placement.reduce_kind);
    }
    // Reshards to the recorded sharding, which x.sharding() has promised.
    for (std::size_t i = 0; i < version.values.size(); ++i) {
      const auto promised = sharding_of_value(Array(graph_.nodes[number_.at(&node)], static_cast<int>(i)));
      if (promised && !same_layout(builder_.value(version.values[i]).layout, *promised, out[i].shape.ndim()))
        version.values[i] = builder_.reshard(version.values[i], *promised);
    }
  }

  std::vector<int> emit_communicating(const Communicating& kernel, const Node& node, const Version& version,
                                      const std::vector<int>& inputs, const std::vector<Type>& out) {
    std::vector<Type> in;
    std::vector<std::optional<Sharding>> shardings;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      in.push_back(type_of(node.inputs[i])), shardings.emplace_back(version.placement.inputs[i]);
    const auto& fixed = manual_axes_of(node.region);
    std::vector<CommunicationCost> costs;
    if (kernel.cost != nullptr)
      costs = kernel.cost(
          {in, out, shardings, *node.params, version.placement.outputs[0].mesh(), fixed, std::nullopt},
          version.placement);
    if (costs.empty() && kernel.alone != nullptr)
      return builder_.kernel(*node.op, node.params, inputs, out, version.placement.outputs);
    return builder_.communicate(*node.op, node.params, inputs, out, version.placement.outputs,
                                std::move(costs));
  }

  const Graph& graph_;
  const Layouts& layouts_;
  ProgramBuilder builder_;
  PlacementMemo memo_;
  std::unordered_map<const Node*, std::size_t> number_;
  std::vector<std::vector<Version>> versions_;
  std::map<std::pair<const Node*, int>, int> uses_, leaf_values_;
};

}  // namespace

Program partition(const Graph& graph, const Layouts& layouts,
                  const std::vector<std::optional<Sharding>>& root_layouts,
                  const std::vector<std::optional<Sharding>>& leaf_layouts) {
  return Partitioner(graph, layouts).run(root_layouts, leaf_layouts);
}

}  // namespace tessera
