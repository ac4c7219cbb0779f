#include "ops/reduce/tree.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/reduce/tree.hpp"
#include "ops/build.hpp"
#include "program/builder.hpp"

namespace tessera {
namespace {

// A line that `parts` ranks hold together; each rank contributes its nodes as `rows` rows.
struct TreeParams {
  int dim;
  ReduceKind kind;
  std::int64_t extent, parts, rows, end_of_leaves;
  template <class V> void fields(V&& visit) const {
    visit("dim", dim);
    visit("kind", kind);
    visit("extent", extent);
    visit("parts", parts);
    visit("rows", rows);
    visit("end_of_leaves", end_of_leaves);
  }
};

int dim_of(const Params& params) { return params.as<ReduceParams>().dims[0]; }

bool has_leaves(const Shape& whole, int dim) {
  std::int64_t inner = 1;
  for (int d = dim + 1; d < whole.ndim(); ++d) inner *= whole[d];
  return kernels::has_leaves(whole[dim], inner);
}
std::int64_t end_of_leaves(const Params& params, const Shape& whole) {
  const auto& p = params.as<ReduceParams>();
  return p.has_leaves ? kernels::end_of_leaves(whole[p.dims[0]]) : 0;
}

kernels::TreeLines lines_of(ReduceKind kind, const Tile& x, int dim, std::int64_t end_of_leaves) {
  kernels::TreeLines lines{kind, x.dtype, 1, 1, 1, end_of_leaves};
  const Shape shape = x.shape();
  for (int d = 0; d < shape.ndim(); ++d)
    (d < dim ? lines.outer : d == dim ? lines.extent : lines.inner) *= shape[d];
  return lines;
}

std::vector<kernels::TreeNode> nodes_of_part(const TreeParams& p, std::int64_t part) {
  const auto range = block_range(p.extent, p.parts, part);
  return kernels::nodes_of(range.start, range.size(), p.end_of_leaves);
}

std::int64_t most_rows(const TreeParams& p) {
  std::size_t most = 1;
  for (std::int64_t part = 0; part < p.parts; ++part) most = std::max(most, nodes_of_part(p, part).size());
  return static_cast<std::int64_t>(most);
}

const OpDef nodes_op{.name = "tree_nodes",
                     .runs = Kernel{[](const KernelArgs& a) {
                       const auto& p = a.params.as<TreeParams>();
                       const auto& x = a.in[0];
                       if (a.out[0].elements() == 0) return;
                       kernels::tree_nodes(lines_of(p.kind, x, p.dim, p.end_of_leaves), x.box[p.dim].start,
                                           x.data, p.rows, a.out[0].data);
                     }},
                     .same_bits = SameBits::made_for_it};

const OpDef root_op{.name = "tree_root",
                    .runs = Kernel{[](const KernelArgs& a) {
                      const auto& p = a.params.as<TreeParams>();
                      if (a.out[0].elements() == 0) return;
                      std::vector<kernels::TreeNode> rows;
                      for (std::int64_t part = 0; part < p.parts; ++part) {
                        const auto nodes = nodes_of_part(p, part);
                        rows.insert(rows.end(), nodes.begin(), nodes.end());
                        rows.resize(static_cast<std::size_t>((part + 1) * p.rows), {0, -1});
                      }
                      kernels::tree_root(lines_of(p.kind, a.in[0], p.dim, 0), rows, a.in[0].data,
                                         a.out[0].data);
                    }},
                    .same_bits = SameBits::made_for_it};

template <ReduceKind kind> void reduce_whole(const KernelArgs& a) {
  if (a.out[0].elements() == 0) return;
  const int dim = dim_of(a.params);
  kernels::tree_reduce(lines_of(kind, a.in[0], dim, end_of_leaves(a.params, a.in[0].global)), a.in[0].data,
                       a.out[0].data);
}

// The kept dims, then the reduced one.
RuleReading read_dim_last(const Params& params, std::span<const Shape> in) {
  std::vector<int> order(in[0].size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + dim_of(params));
  order.push_back(dim_of(params));
  return {{{{'K', 1}}}, {std::move(order)}};
}
const Rule sum_rule("M.. K.. -> M.. | sum K", read_dim_last),
    product_rule("M.. K.. -> M.. | prod K", read_dim_last);

// The operand stays in its layout; only nodes are sent.
Placement place_tree(const PlacementArgs& args) {
  auto placement = place_by(sum_rule, args);
  placement.partial_axes.clear();
  return placement;
}

using DimAxesList = std::vector<std::vector<int>>;
Sharding without_dim(const Mesh& mesh, DimAxesList dims, int dim) {
  dims.erase(dims.begin() + dim);
  return Sharding::from_dim_axes(mesh, dims);
}

// The layout in which nodes are joined. A few nodes are sent to every rank; if there are many lines, a
// remaining dim is split, so that each rank joins a share.
DimAxesList layout_of_joins(DimAxesList dims, const Type& nodes, int dim, const Sharding& layout) {
  constexpr std::int64_t few_bytes = 16 << 10;
  const MeshAxes axes = std::exchange(dims[dim], {});
  const auto bytes =
      layout.shard_shape(nodes.shape).elements() * devices_along(layout.mesh(), axes) * itemsize(nodes.dtype);
  if (static_cast<std::int64_t>(bytes) <= few_bytes) return dims;
  int widest = -1;
  std::int64_t most = 1;
  for (int d = 0; d < nodes.shape.ndim(); ++d) {
    const auto each =
        nodes.shape[d] / (devices_along(layout.mesh(), dims[d]) * devices_along(layout.mesh(), axes));
    if (d != dim && each >= most) most = each, widest = d;
  }
  if (widest >= 0) dims[widest].insert(dims[widest].end(), axes.begin(), axes.end());
  return dims;
}

// x (8, 1000) P(None, 'x') over 3 ranks, dim 1:
//
//   blocks [0, 334) [334, 668) [668, 1000)   ->  at most 8 nodes each: (8, 24) P(None, 'x')
//   -> P(), or P('x') where the dims that stay are large  ->  joined: (8)
template <ReduceKind kind>
std::vector<int> lower(ProgramBuilder& builder, const Node& node, std::span<const int> in) {
  const int dim = dim_of(*node.params);
  const Type x = builder.value(in[0]).type, &out = node.outputs[0].type;
  const Sharding layout = builder.value(in[0]).layout;
  const Mesh mesh = layout.mesh();
  const auto dims = layout.dim_axes(x.shape.ndim());
  if (dims[dim].empty())
    return builder.kernel(*node.op, node.params, {in[0]}, {out}, {without_dim(mesh, dims, dim)});
  TreeParams p{
      dim, kind, x.shape[dim], devices_along(mesh, dims[dim]), 1, end_of_leaves(*node.params, x.shape)};
  p.rows = most_rows(p);
  Shape extents = x.shape;
  extents[dim] = p.parts * p.rows;
  const Type nodes{extents, x.dtype};
  const auto params = make_params(p);
  const int made = builder.kernel(nodes_op, params, {in[0]}, {nodes}, {layout})[0];
  const auto joined = layout_of_joins(dims, nodes, dim, layout);
  const int moved = builder.reshard(made, Sharding::from_dim_axes(mesh, joined));
  return builder.kernel(root_op, params, {moved}, {out}, {without_dim(mesh, joined, dim)});
}

}  // namespace

OpDef tree_record(OpDef own, const char* name, ReduceKind kind) {
  own.name = name;
  own.sharding = PlacementRule{place_tree, kind == ReduceKind::prod ? &product_rule : &sum_rule};
  own.runs = kind == ReduceKind::prod
                 ? Lower{.write = lower<ReduceKind::prod>, .kernel = reduce_whole<ReduceKind::prod>}
                 : Lower{.write = lower<ReduceKind::sum>, .kernel = reduce_whole<ReduceKind::sum>};
  own.linear = Linear::no;
  own.parts = Parts::tree_nodes;
  own.same_bits = SameBits::made_for_it;
  own.instead = nullptr;
  return own;
}

TreeStep tree_step(const OpDef& op) {
  if (&op == &nodes_op) return TreeStep::nodes;
  if (&op == &root_op) return TreeStep::root;
  const auto* rule = std::get_if<PlacementRule>(&op.sharding);
  return rule != nullptr && rule->place == place_tree ? TreeStep::whole : TreeStep::none;
}

std::optional<Reduction> tree_reduction_of(const OpDef& op, const Params& params, const Shape& whole) {
  if (&op == &nodes_op) {
    const auto& p = params.as<TreeParams>();
    return Reduction{p.kind, {p.dim}, TreePart{p.end_of_leaves, p.rows}};
  }
  if (tree_step(op) != TreeStep::whole) return std::nullopt;
  const bool is_product = std::get<PlacementRule>(op.sharding).rule == &product_rule;
  return Reduction{is_product ? ReduceKind::prod : ReduceKind::sum,
                   {dim_of(params)},
                   TreePart{end_of_leaves(params, whole)}};
}

std::vector<Array> tree_instead(const OpDef& tree, const ReduceParams& p, const Array& x) {
  if (!is_inexact(x.dtype()) || p.dims.empty()) return {};
  auto order = p.dims;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return x.shape()[a] != x.shape()[b] ? x.shape()[a] > x.shape()[b] : a > b;
  });
  Array result = x;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto gone = std::count_if(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](int d) { return d < order[i]; });
    const int dim = order[i] - static_cast<int>(gone);
    result = record(tree, make_params(ReduceParams{{dim}, has_leaves(result.shape(), dim)}), {result});
  }
  return {result};
}

}  // namespace tessera
