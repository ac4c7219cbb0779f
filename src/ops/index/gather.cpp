#include "ops/index/gather.hpp"

#include <algorithm>

#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/update/addressed.hpp"

namespace tessera {
namespace {

Shape gathered_shape(const Shape& x, const Shape& indices, int first, int count) {
  std::vector<std::int64_t> extents(x.begin(), x.begin() + first);
  extents.insert(extents.end(), indices.begin(), indices.end());
  extents.insert(extents.end(), x.begin() + first + count, x.end());
  return Shape(std::move(extents));
}

const Rule gather_rule("L.. A.. R.., {I..} -> L.. I.. R.. | sum A", read_addressed);

// The placement if x (along an addressed dim) and the list of indices are split over the same mesh axes:
// instead of replicating one of them, ranks fetch the elements that their part of the list names, if that
// moves less. nullopt in other cases.
std::optional<Placement> place_fetch(const PlacementArgs& args, const GatherParams& p, std::int64_t& bytes) {
  if (args.wanted || !args.shardings[0] || !(args.shardings[0]->mesh() == args.mesh)) return std::nullopt;
  const int ndim = args.in[0].shape.ndim(), list_ndim = args.in[1].shape.ndim();
  const auto x = args.shardings[0]->dim_axes(ndim);
  const int dim = split_dim(x, p);
  if (dim < 0) return std::nullopt;
  std::optional<std::vector<std::vector<int>>> list;
  for (std::size_t k = 1; k < args.in.size(); ++k) {
    if (!args.shardings[k]) continue;
    if (!(args.shardings[k]->mesh() == args.mesh)) return std::nullopt;
    const auto axes = args.shardings[k]->dim_axes(list_ndim);
    if (list && *list != axes) return std::nullopt;
    list = axes;
  }
  if (!list) return std::nullopt;
  std::vector<bool> in_list(args.mesh.ndim(), false);
  for (const auto& axes : *list)
    for (const int a : axes) in_list[a] = true;
  bool shares_an_axis = false;
  std::vector<std::vector<int>> result(x.begin(), x.begin() + p.first);
  result.insert(result.end(), list->begin(), list->end());
  result.insert(result.end(), x.begin() + p.first + p.count, x.end());
  for (int d = 0; d < ndim; ++d)
    for (const int a : x[d]) {
      if (!in_list[a]) continue;
      if (d != dim) return std::nullopt;
      shares_an_axis = true;
    }
  if (!shares_an_axis) return std::nullopt;
  const Sharding list_sharding = Sharding::from_dim_axes(args.mesh, *list);
  Placement placement{
      {*args.shardings[0]}, {Sharding::from_dim_axes(args.mesh, result)}, {}, ReduceKind::sum};
  for (int k = 0; k < p.count; ++k) placement.inputs.push_back(list_sharding);
  bytes = placement.outputs[0].shard_shape(args.out[0].shape).elements() *
              static_cast<std::int64_t>(itemsize(args.out[0].dtype)) +
          list_sharding.shard_shape(args.in[1].shape).elements() *
              static_cast<std::int64_t>(sizeof(std::int64_t));
  return placement;
}

Placement place_gather(const PlacementArgs& args) {
  const auto& p = gather_params(args.params);
  std::int64_t bytes = 0, fetch_bytes = 0;
  auto placement = place_by(gather_rule, args, &bytes);
  if (auto fetching = place_fetch(args, p, fetch_bytes); fetching && fetch_bytes < bytes)
    return std::move(*fetching);
  return placement;
}

// The traffic of a fetch: x is split along an addressed dim, but the result is not partial.
std::vector<CommunicationCost> fetch_cost(const PlacementArgs& args, const Placement& placement) {
  const auto& p = gather_params(args.params);
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim());
  const int dim = split_dim(axes, p);
  if (dim < 0 || !placement.partial_axes.empty()) return {};
  const auto item = static_cast<std::int64_t>(itemsize(args.out[0].dtype));
  const auto named = placement.inputs[1].shard_shape(args.in[1].shape).elements() *
                     static_cast<std::int64_t>(sizeof(std::int64_t));
  const auto rows = placement.outputs[0].shard_shape(args.out[0].shape).elements() * item;
  return {{"all-to-all", axes[dim], rows + named, 2}};
}

void communicate_gather(const CommunicationArgs& args) {
  const auto& a = args.local;
  const auto& p = gather_params(a.params);
  const Tile &x = a.in[0], &out = a.out[0];
  const int ndim = static_cast<int>(x.box.size()), dim = split_dim(args.in_layouts[0].dim_axes(ndim), p);
  const auto& comm = group_of_dim(args.in_layouts[0], dim, ndim, args.me);
  const auto list = owners_of(a.in.subspan(1), x, dim, comm.size(), p);
  fetch(comm, list, out.dtype, view_of(x.shape(), p), x.data, out.data);
}

// If the list's entries are the outermost dim of the result, each piece of them is used while it is in the
// cache.
void gather_alone(const KernelArgs& a) {
  const auto& p = gather_params(a.params);
  const Tile &x = a.in[0], &out = a.out[0];
  const auto view = view_of(x.shape(), p);
  const auto list = a.in.subspan(1);
  const auto item = itemsize(out.dtype);
  if (view.outer != 1)
    return kernels::gather(out.data, x.data, view, positions_in_block(list, x.global, x.box, p), item);
  const auto row_bytes = view.inner * static_cast<std::int64_t>(item);
  kernels::share(list[0].elements(), kernels::worth_a_thread(row_bytes),
                 [&](std::int64_t begin, std::int64_t end) {
                   for_pieces(list, x.global, x.box, p, begin, end,
                              [&](std::int64_t first, std::span<const std::int64_t> places) {
                                kernels::gather(out.data + first * row_bytes, x.data, view, places, item);
                              });
                 });
}

// ---- gather: x, indices... ----
// A split addressed dim makes the result partial: every rank contributes its elements and zeros for others;
// or ranks fetch from each other.
const OpDef gather_op{
    .name = "gather",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      const auto& p = gather_params(params);
      return {{gathered_shape(in[0].shape, in[1].shape, p.first, p.count), in[0].dtype}};
    },
    .sharding = PlacementRule{place_gather, &gather_rule},
    .runs = Communicating{.together = communicate_gather, .cost = fetch_cost, .alone = gather_alone},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = gather_params(*v.node.params);
      Cotangents result(v.in.size());
      if (v.wanted[0])
        result[0] = scatter_add_zeros(v.in[0].shape(), index_inputs(v.in, p), v.cotangents[0], p.first,
                                      p.out_of_range);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = gather_params(*args.node.params);
      const bool any_index =
          std::any_of(args.dims.begin() + 1, args.dims.end(), [](int d) { return d != not_batched; });
      if (!any_index)
        return {{gather(batch_first(args.in[0], args.dims[0]), index_inputs(args.in, p), p.first + 1,
                        p.out_of_range)},
                {0}};
      std::vector<Array> indices;
      for (std::size_t i = 1; i < args.in.size(); ++i) indices.push_back(batched_in_front(args, i));
      if (args.dims[0] == not_batched)
        return {{gather(args.in[0], std::move(indices), p.first, p.out_of_range)}, {p.first}};
      // Both are batched: the batch number becomes one more index.
      std::vector<std::int64_t> column(indices[0].shape().size(), 1);
      column[0] = args.size;
      indices.insert(indices.begin(),
                     broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
      return {
          {gather(moveaxis(args.in[0], args.dims[0], p.first), std::move(indices), p.first, p.out_of_range)},
          {p.first}};
    },
    .linear = Linear::in_first,
    .parts = Parts::unreduced_dims,
};

const Registered registered(gather_op);

}  // namespace

Array gather(const Array& x, std::vector<Array> indices, int first, OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range};
  indices.insert(indices.begin(), x);
  return record(gather_op, make_params(p), std::move(indices));
}

}  // namespace tessera
