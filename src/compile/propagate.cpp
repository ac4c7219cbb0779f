#include "compile/propagate.hpp"

#include <algorithm>
#include <map>

namespace tessera {
namespace {

bool same_layout(const Sharding& a, const Sharding& b, int ndim) {
  return a.mesh() == b.mesh() && a.dim_axes(ndim) == b.dim_axes(ndim);
}

const std::vector<int>& fixed_axes_of(const Node& node) {
  static const std::vector<int> none;
  return node.region ? node.region->manual_axes : none;
}

// A node's operands as the place rule sees them.
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
    o.mesh = unify_meshes(*node.op, node.inputs, o.shardings, node.where);
    if (!o.mesh && node.op->commit != nullptr) o.mesh = node.op->commit(*node.params);
    return o;
  }

  void visit(const NodePtr& node) {
    if (!node->outputs[0].sharding) return;
    const Operands o = operands_of(*node);
    const PlaceArgs args{o.in,        o.out, o.shardings, *node->params, *o.mesh, fixed_axes_of(*node),
                         std::nullopt};
    Placement placement = place(*node->op, args);
    if (node->outputs.size() == 1 && is_one_local_step(*node->op)) choose(node, args, placement);
    for (std::size_t i = 0; i < node->inputs.size(); ++i)
      want(node->inputs[i], wish(*node, args, placement, i));
  }

  // Where an op would like an operand: a move wants it at its target already.
  static Sharding wish(const Node& node, const PlaceArgs& args, const Placement& placement, std::size_t i) {
    if (lowering(*node.op) == nullptr || is_placed_by_rule(*node.op)) return placement.inputs[i];
    if (node.op->flops != nullptr)
      return placement.inputs[i];  // not a move: it computes (fft), and knows best from where
    std::vector<std::optional<Sharding>> without(args.shardings.begin(), args.shardings.end());
    without[i].reset();
    PlaceArgs free = args;
    free.shardings = without;
    free.wanted = placement.outputs[0];
    return place(*node.op, free).inputs[i];
  }

  void choose(const NodePtr& node, const PlaceArgs& args, Placement& placement) {
    const int ndim = node->outputs[0].type.shape.ndim();
    const Sharding recorded = *node->outputs[0].sharding;
    const auto& wishes = wanted_[{node.get(), 0}];
    std::vector<Sharding> candidates{recorded};
    for (const auto& w : wishes)
      if (w.mesh() == recorded.mesh() &&
          std::none_of(candidates.begin(), candidates.end(),
                       [&](const Sharding& c) { return same_layout(c, w, ndim); }))
        candidates.push_back(w);
    if (candidates.size() == 1 || candidates.size() > 4) return;
    std::int64_t least = -1;
    std::size_t best = 0;
    Placement best_placement;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      Placement own = placement;
      std::int64_t bytes = placement_cost(*node, placement, candidates[c], args);
      if (c > 0) {
        PlaceArgs backward = args;
        backward.wanted = candidates[c];
        Placement pulled = place(*node->op, backward);
        if (const auto pulled_bytes = placement_cost(*node, pulled, candidates[c], args);
            pulled_bytes <= bytes) {
          bytes = pulled_bytes;
          own = std::move(pulled);
        }
      }
      const auto& type = node->outputs[0].type;
      for (const auto& w : wishes)
        if (!same_layout(candidates[c], w, ndim))
          bytes += plan_reshard(candidates[c], w, type.shape, type.dtype, args.fixed_axes).bytes;
      // A tie goes to what a consumer asked for: the same bytes, and smaller blocks on the way if they are
      // split.
      const bool better =
          least < 0 || bytes < least ||
          (bytes == least && best == 0 &&
           candidates[c].shard_shape(type.shape).elements() < recorded.shard_shape(type.shape).elements());
      if (better) least = bytes, best = c, best_placement = std::move(own);
    }
    if (best == 0) return;
    layouts_[node.get()] = {candidates[best]};
    placement = std::move(best_placement);
  }

  const Graph& graph_;
  std::map<std::pair<const Node*, int>, std::vector<Sharding>> wanted_;
  Layouts layouts_;
};

// Of products, convolutions, factorizations; what else is computed takes less time than moving its operands.
std::int64_t arithmetic_as_bytes(const Node& node, const Placement& placement, const PlaceArgs& args) {
  constexpr double flops_per_moved_byte =
      5;  // a core's product against what a network brings it; not measured: ranks must agree
  if (node.op->flops == nullptr) return 0;
  std::vector<Type> in, out;
  for (std::size_t i = 0; i < args.in.size(); ++i)
    in.push_back({placement.inputs[i].shard_shape(args.in[i].shape), args.in[i].dtype});
  for (std::size_t i = 0; i < args.out.size(); ++i)
    out.push_back({placement.outputs[i].shard_shape(args.out[i].shape), args.out[i].dtype});
  return static_cast<std::int64_t>(
      std::min(1e17, node.op->flops(in, out, *node.params) / flops_per_moved_byte));
}

}  // namespace

std::int64_t placement_cost(const Node& node, const Placement& placement, const Sharding& target,
                            const PlaceArgs& args) {
  std::int64_t bytes = arithmetic_as_bytes(node, placement, args);
  for (std::size_t i = 0; i < args.in.size(); ++i)
    if (args.shardings[i] && !same_layout(*args.shardings[i], placement.inputs[i], args.in[i].shape.ndim()))
      bytes += plan_reshard(*args.shardings[i], placement.inputs[i], args.in[i].shape, args.in[i].dtype,
                            args.fixed_axes)
                   .bytes;
  const auto& type = node.outputs[0].type;
  if (!placement.partial_axes.empty()) {
    ProgramBuilder builder;
    const int v = builder.add_input(type, placement.outputs[0], nullptr);
    builder.set_partial(v, placement.partial_axes, placement.reduce_kind);
    builder.reshard(v, target);
    for (const auto& instruction : builder.program().instructions) bytes += instruction.bytes;
  } else if (!same_layout(placement.outputs[0], target, type.shape.ndim())) {
    bytes += plan_reshard(placement.outputs[0], target, type.shape, type.dtype, args.fixed_axes).bytes;
  }
  return bytes;
}

Layouts propagate_backward(const Graph& graph, const std::vector<std::optional<Sharding>>& root_layouts) {
  return Backward(graph, root_layouts).run();
}

}  // namespace tessera
