#include "compile/propagate.hpp"
#include "base/rates.hpp"

#include <algorithm>
#include <map>

namespace tessera {
namespace {

// The types and shardings of a node's operands, as arguments for its placement rule.
struct Operands {
  std::vector<Type> in, out;
  std::vector<std::optional<Sharding>> shardings;
  std::optional<Mesh> mesh;
};

class Backward {
 public:
  Backward(const Graph& graph, const std::vector<std::optional<Sharding>>& root_layouts) : graph_(graph) {
    for (std::size_t i = 0; i < graph.roots.size(); ++i) {
      const auto& root = graph.roots[i];
      const auto& own = output_of(root).sharding;
      const bool given = i < root_layouts.size() && root_layouts[i];
      if (given)
        want(root, *root_layouts[i]);
      else if (own)
        want(root, *own);
    }
  }

  Layouts run() {
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) visit(graph_.nodes[n]);
    return std::move(layouts_);
  }

 private:
  void want(const Array& x, const Sharding& layout) {
    wanted_[{x.node().get(), x.output()}].push_back(layout);
  }

  Operands operands_of(const Node& node) const {
    Operands o;
    for (const auto& x : node.inputs)
      o.in.push_back(type_of(x)), o.shardings.push_back(output_of(x).sharding);
    for (const auto& output : node.outputs) o.out.push_back(output.type);
    o.mesh = unify_meshes(node.inputs, o.shardings);
    if (!o.mesh && node.op->commit != nullptr) o.mesh = node.op->commit(*node.params);
    return o;
  }

  void visit(const NodePtr& node) {
    if (!node->outputs[0].sharding) return;
    const Operands o = operands_of(*node);
    const PlacementArgs args{o.in,          o.out,          o.shardings,
                             *node->params, *o.mesh,        manual_axes_of(node->region),
                             std::nullopt,  node->same_bits};
    Placement placement = memo_.place(*node->op, args);
    if (has_free_layout(*node)) choose(node, args, placement);
    for (std::size_t i = 0; i < node->inputs.size(); ++i)
      want(node->inputs[i], wish(*node, args, placement, i));
  }

  // The layout that an op prefers for an operand: a move prefers its target.
  Sharding wish(const Node& node, const PlacementArgs& args, const Placement& placement, std::size_t i) {
    if (lowering(*node.op) == nullptr || is_placed_by_rule(*node.op)) return placement.inputs[i];
    if (node.op->flops != nullptr)
      // The node computes (fft) instead of moving; its placement chooses the best source layout.
      return placement.inputs[i];
    std::vector<std::optional<Sharding>> without(args.shardings.begin(), args.shardings.end());
    without[i].reset();
    PlacementArgs free = args;
    free.shardings = without;
    free.wanted = placement.outputs[0];
    return memo_.place(*node.op, free).inputs[i];
  }

  // Candidate layouts of the result: the recorded one, and those that consumers on the same mesh ask for.
  std::vector<Sharding> candidates_of(const Node& node) const {
    std::vector<Sharding> candidates{*node.outputs[0].sharding};
    const int ndim = node.outputs[0].type.shape.ndim();
    for (const auto& w : wishes_of(node))
      if (w.mesh() == candidates[0].mesh() &&
          std::none_of(candidates.begin(), candidates.end(),
                       [&](const Sharding& c) { return same_layout(c, w, ndim); }))
        candidates.push_back(w);
    return candidates;
  }
  const std::vector<Sharding>& wishes_of(const Node& node) const {
    static const std::vector<Sharding> none;
    const auto found = wanted_.find({&node, 0});
    return found == wanted_.end() ? none : found->second;
  }

  struct Choice {
    Sharding layout;
    Placement placement;
    std::int64_t bytes = 0;
  };
  // The cheaper way to the layout: placed as recorded and then moved, or computed directly into it; plus the
  // moves of the consumers from there.
  Choice choice_of(const Node& node, PlacementArgs args, const Placement& placement, const Sharding& layout) {
    Choice choice{layout, placement, placement_cost(node, placement, layout, args, memo_)};
    if (!same_layout(layout, *node.outputs[0].sharding, node.outputs[0].type.shape.ndim())) {
      args.wanted = layout;
      Placement pulled = memo_.place(*node.op, args);
      const auto bytes = placement_cost(node, pulled, layout, args, memo_);
      if (bytes <= choice.bytes) choice = {layout, std::move(pulled), bytes};
    }
    const auto& type = node.outputs[0].type;
    for (const auto& w : wishes_of(node))
      if (!same_layout(layout, w, type.shape.ndim()))
        choice.bytes += memo_.moved_bytes(layout, w, type, args.fixed_axes);
    return choice;
  }

  void choose(const NodePtr& node, const PlacementArgs& args, Placement& placement) {
    const auto candidates = candidates_of(*node);
    if (candidates.size() == 1 || candidates.size() > 4) return;
    const auto& shape = node->outputs[0].type.shape;
    const auto block_of = [&](const Sharding& layout) { return layout.shard_shape(shape).elements(); };
    const Choice recorded = choice_of(*node, args, placement, candidates[0]);
    Choice best = recorded;
    bool is_recorded = true;
    for (std::size_t c = 1; c < candidates.size(); ++c) {
      Choice other = choice_of(*node, args, placement, candidates[c]);
      // In a tie a consumer's layout with smaller blocks wins: equal bytes, but less temporary memory.
      const bool wins_tie = is_recorded && block_of(other.layout) < block_of(recorded.layout);
      if (other.bytes > best.bytes || (other.bytes == best.bytes && !wins_tie)) continue;
      best = std::move(other);
      is_recorded = false;
    }
    if (is_recorded) return;
    layouts_[node.get()] = {best.layout};
    placement = std::move(best.placement);
  }

  const Graph& graph_;
  std::map<std::pair<const Node*, int>, std::vector<Sharding>> wanted_;
  Layouts layouts_;
  PlacementMemo memo_;
};

// The arithmetic of products, convolutions and factorizations; other ops take less time than moving their
// operands.
std::int64_t arithmetic_as_bytes(const Node& node, const Placement& placement, const PlacementArgs& args) {
  if (node.op->flops == nullptr) return 0;
  std::vector<Type> in, out;
  for (std::size_t i = 0; i < args.in.size(); ++i)
    in.push_back({placement.inputs[i].shard_shape(args.in[i].shape), args.in[i].dtype});
  for (std::size_t i = 0; i < args.out.size(); ++i)
    out.push_back({placement.outputs[i].shard_shape(args.out[i].shape), args.out[i].dtype});
  return static_cast<std::int64_t>(
      std::min(1e17, node.op->flops(in, out, *node.params) / rates().flops_per_moved_byte()));
}

}  // namespace

bool has_free_layout(const Node& node) { return node.outputs.size() == 1 && is_one_local_step(*node.op); }

std::int64_t placement_cost(const Node& node, const Placement& placement, const Sharding& target,
                            const PlacementArgs& args, PlacementMemo& memo) {
  std::int64_t bytes = arithmetic_as_bytes(node, placement, args);
  for (std::size_t i = 0; i < args.in.size(); ++i)
    if (args.shardings[i] && !same_layout(*args.shardings[i], placement.inputs[i], args.in[i].shape.ndim()))
      bytes += memo.moved_bytes(*args.shardings[i], placement.inputs[i], args.in[i], args.fixed_axes);
  const auto& type = node.outputs[0].type;
  if (!placement.partial_axes.empty()) {
    ProgramBuilder builder;
    const int v = builder.add_input(type, placement.outputs[0], nullptr);
    builder.set_partial(v, placement.partial_axes, placement.reduce_kind);
    builder.reshard(v, target);
    for (const auto& instruction : builder.program().instructions) bytes += instruction.bytes;
  } else if (!same_layout(placement.outputs[0], target, type.shape.ndim())) {
    bytes += memo.moved_bytes(placement.outputs[0], target, type, args.fixed_axes);
  }
  return bytes;
}

Layouts propagate_backward(const Graph& graph, const std::vector<std::optional<Sharding>>& root_layouts) {
  return Backward(graph, root_layouts).run();
}

}  // namespace tessera
