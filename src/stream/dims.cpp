#include "stream/dims.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/call.hpp"
#include "compile/cost.hpp"
#include "compile/pipeline.hpp"
#include "ops/contract/dot_general.hpp"
#include "ops/index/remap_op.hpp"
#include "ops/index/update/addressed.hpp"
#include "ops/sort/cumulative.hpp"

namespace tessera::stream {
namespace {

bool has_parts(const Node& node, bool is_reduced) {
  if (node.op->name == "scatter") return !is_reduced;
  switch (parts_of(*node.op)) {
    case Parts::all_dims:
    case Parts::tree_nodes: return true;
    case Parts::reduced_dims: return is_reduced;
    case Parts::unreduced_dims: return !is_reduced || length_in_order(node) > 0;
    default: return false;
  }
}

FactorRule rule_on(const Node& node) {
  std::vector<Shape> in, out;
  for (const auto& x : node.inputs) in.push_back(x.shape());
  for (const auto& y : node.outputs) out.push_back(y.type.shape);
  return rule_of(*node.op)->on(in, out, *node.params);
}

// The dim that consists of factor f alone: -1 if there is none, -2 if the factor is otherwise in the
// operand.
int dim_of_factor(const FactorRule& rule, int f, const std::vector<DimFactors>& dims, const Shape& shape) {
  int found = -1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (std::find(dims[d].begin(), dims[d].end(), f) == dims[d].end()) continue;
    const bool is_alone = std::all_of(dims[d].begin(), dims[d].end(),
                                      [&](int other) { return other == f || rule.factors[other].size == 1; });
    if (found != -1 || !is_alone || shape[d] != rule.factors[f].size) return -2;
    found = static_cast<int>(d);
  }
  return found;
}

std::vector<DimLink> links_by_rule(const Node& node) {
  const FactorRule rule = rule_on(node);
  std::vector<DimLink> links;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    const auto& factor = rule.factors[f];
    DimLink link{{}, {}, factor.kind == FactorKind::reduce};
    if (factor.kind == FactorKind::whole || !has_parts(node, link.is_reduced)) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      link.in.push_back(dim_of_factor(rule, f, rule.inputs[i], node.inputs[i].shape()));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      link.out.push_back(dim_of_factor(rule, f, rule.outputs[i], node.outputs[i].type.shape));
    const auto is_mixed = [](int dim) { return dim == -2; };
    if (std::any_of(link.in.begin(), link.in.end(), is_mixed) ||
        std::any_of(link.out.begin(), link.out.end(), is_mixed))
      continue;
    if (link.is_reduced && length_in_order(node) > 0 &&
        link.in[0] != dims_of_product(node)->contract_a[0])  // the last of the summed dims run first
      continue;
    links.push_back(std::move(link));
  }
  return links;
}

// A dim that a remap leaves as it is: slices, pads, joins and flips of the other dims.
bool leaves_dim(const RemapParams& p, const Node& node, std::size_t d) {
  return std::all_of(p.pieces.begin(), p.pieces.end(), [&](const RemapPiece& piece) {
    return piece.to[d] == Range{0, p.shape[d]} && piece.offset[d] == 0 && piece.step[d] == 1 &&
           node.inputs[static_cast<std::size_t>(piece.source)].shape()[d] == p.shape[d];
  });
}
std::vector<DimLink> links_of_remap(const Node& node) {
  const auto& p = node.params->as<RemapParams>();
  std::vector<DimLink> links;
  if (p.layout || p.pieces.empty()) return links;
  for (std::size_t d = 0; d < p.shape.size(); ++d)
    if (leaves_dim(p, node, d))
      links.push_back(
          {std::vector<int>(node.inputs.size(), static_cast<int>(d)), {static_cast<int>(d)}, false});
  return links;
}

// A product with a sparse matrix in memory has the vectors' further dims for itself.
std::vector<DimLink> links_of_sparse(const Node& node) {
  std::vector<DimLink> links;
  for (int d = 1; d < node.inputs[1].ndim(); ++d) links.push_back({{-1, d}, {d}, false});
  return links;
}

// The node with each operand split along the dim over two devices.
std::vector<Array> split_along(const Node& node, std::size_t dim) {
  std::vector<Array> inputs;
  const Mesh mesh = abstract_mesh({2}, {"slab"});
  for (const auto& x : node.inputs) {
    std::vector<std::vector<int>> axes(static_cast<std::size_t>(x.ndim()));
    if (x.shape() == node.inputs[0].shape()) axes[dim] = {0};
    inputs.push_back(make_placeholder(type_of(x), Sharding::from_dim_axes(mesh, axes), nullptr, 0));
  }
  return record_all(*node.op, node.params, std::move(inputs));
}

// Whether each result has a dim of the link, with the operand's extent: the dim that an op repeats or sums up
// in groups has another one, though a split of it may send nothing.
bool keeps_extent(const DimLink& link, const Node& node, std::int64_t extent) {
  for (std::size_t i = 0; i < link.out.size(); ++i)
    if (link.out[i] < 0 || node.outputs[i].type.shape[static_cast<std::size_t>(link.out[i])] != extent)
      return false;
  return true;
}

// The dims beside those of the lines: split along them, the op sends nothing, and its results are split too.
std::vector<DimLink> links_beside_lines(const Node& node) {
  std::vector<DimLink> links;
  const OnBehalfOf call(node.called());
  for (std::size_t d = 0; d < node.inputs[0].shape().size(); ++d) {
    if (node.inputs[0].shape()[d] < 2) continue;
    const Program program = compile(collect(split_along(node, d), false));
    if (!explanation_of(program).collectives.empty()) continue;
    DimLink link;
    for (const auto& x : node.inputs)
      link.in.push_back(x.shape() == node.inputs[0].shape() ? static_cast<int>(d) : -1);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto axes = program.values[program.outputs[i]].layout.dim_axes(node.outputs[i].type.shape.ndim());
      const auto split =
          std::find_if(axes.begin(), axes.end(), [](const auto& of_dim) { return !of_dim.empty(); });
      link.out.push_back(split == axes.end() ? -1 : static_cast<int>(split - axes.begin()));
    }
    if (keeps_extent(link, node, node.inputs[0].shape()[d])) links.push_back(std::move(link));
  }
  // A running sum goes on with that of the slab before.
  if (const auto running = running_of(node); running && !running->reverse)
    links.push_back({{running->dim}, {running->dim}, false});
  if (is_top_k(node)) links.push_back({{node.inputs[0].ndim() - 1}, {-1, -1}, true});
  return links;
}

}  // namespace

std::vector<DimLink> links_of(const Node& node) {
  if (node.op->name == "remap") return links_of_remap(node);
  if (is_sparse_product(node)) return links_of_sparse(node);
  if (parts_of(*node.op) == Parts::beside_lines) return links_beside_lines(node);
  return rule_of(*node.op) != nullptr ? links_by_rule(node) : std::vector<DimLink>();
}

bool is_sparse_product(const Node& node) {
  return node.op->name == "sparse_dot" || node.op->name == "sparse_dot_transposed";
}

int index_of_scatter(const Node& node, int dim) {
  if (node.op->name != "scatter") return -1;
  const auto& p = gather_params(*node.params);
  return dim >= p.first && dim < p.first + p.count ? dim - p.first : -1;
}
bool is_in_sequence(const Node& node, int dim) {
  const auto running = running_of(node);
  return (running && running->dim == dim) || index_of_scatter(node, dim) >= 0;
}

bool is_top_k(const Node& node) { return node.op->name == "top_k"; }

ReduceKind parts_combine_by(const Node& node) {
  const auto kind = rule_on(node).reduce_kind;
  return kind == ReduceKind::sum && is_bool(node.outputs[0].type.dtype) ? ReduceKind::any : kind;
}

DimClasses::DimClasses(const Graph& graph) {
  for (const auto& leaf : graph.leaves) add(*leaf.node());
  for (const auto& node : graph.nodes) add(*node);
  for (const auto& node : graph.nodes) {
    links_[node.get()] = links_of(*node);
    join(*node);
  }
}

DimClasses DimClasses::joined_by(const std::vector<NodePtr>& nodes) const {
  DimClasses some = *this;
  std::iota(some.parent_.begin(), some.parent_.end(), 0);
  for (const auto& node : nodes) some.join(*node);
  return some;
}

void DimClasses::add(const Node& node) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!first_.emplace(Value{&node, static_cast<int>(i)}, static_cast<int>(parent_.size())).second) continue;
    for (int d = 0; d < node.outputs[i].type.shape.ndim(); ++d)
      parent_.push_back(static_cast<int>(parent_.size()));
  }
}

void DimClasses::join(const Node& node) {
  for (const auto& link : links(node)) {
    int with = -1;
    const auto unite = [&](int number) {
      if (with >= 0) parent_[static_cast<std::size_t>(root(number))] = root(with);
      with = number;
    };
    for (std::size_t i = 0; i < link.in.size(); ++i)
      if (link.in[i] >= 0) unite(number(*node.inputs[i].node(), node.inputs[i].output(), link.in[i]));
    for (std::size_t i = 0; i < link.out.size(); ++i)
      if (link.out[i] >= 0) unite(number(node, static_cast<int>(i), link.out[i]));
  }
}

int DimClasses::number(const Node& node, int output, int dim) const {
  return first_.at({&node, output}) + dim;
}
int DimClasses::root(int number) const {
  while (parent_[static_cast<std::size_t>(number)] != number)
    number = parent_[static_cast<std::size_t>(number)];
  return number;
}
int DimClasses::of(const Node& node, int output, int dim) const { return root(number(node, output, dim)); }

int DimClasses::dim_in(int dim_class, const Node& node, int output) const {
  int found = -1;
  for (int d = 0; d < node.outputs[static_cast<std::size_t>(output)].type.shape.ndim(); ++d)
    if (of(node, output, d) == dim_class) {
      if (found != -1) return -2;
      found = d;
    }
  return found;
}

}  // namespace tessera::stream
