#include "ops/index/gather.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/fetch.hpp"

namespace tessera {
namespace {

struct GatherParams {
  int first = 0, count = 0;  // the addressed dims
  OutOfRange out_of_range = OutOfRange::clamp;
  std::string op = "";  // scatter
  Shape shape = {};     // scatter_add_zeros: of the result
  template <class V> void fields(V&& visit) const {
    visit("first", first);
    visit("count", count);
    visit("out_of_range", out_of_range);
    visit("op", op);
    visit("shape", shape);
  }
};
const GatherParams& params_of(const Params& p) { return p.as<GatherParams>(); }

Shape gathered_shape(const Shape& x, const Shape& indices, int first, int count) {
  std::vector<std::int64_t> extents(x.begin(), x.begin() + first);
  extents.insert(extents.end(), indices.begin(), indices.end());
  extents.insert(extents.end(), x.begin() + first + count, x.end());
  return Shape(std::move(extents));
}

std::vector<std::int64_t> as_int64(const Tile& tile) {
  std::vector<std::int64_t> values(tile.elements());
  const void* in = tile.data;
  if (!values.empty()) kernels::find_cast(tile.dtype, int64)(&in, values.data(), tile.elements());
  return values;
}

// Positions in the block `box` of the addressed dims, seen as one: -1 for what the block does not hold.
std::vector<std::int64_t> positions_in_block(std::span<const Tile> indices, const Shape& global,
                                             const Box& box, const GatherParams& p) {
  std::vector<std::int64_t> positions(indices[0].elements(), 0);
  for (int k = 0; k < p.count; ++k) {
    const auto d = static_cast<std::size_t>(p.first + k);
    const auto extent = global[d];
    const auto values = as_int64(indices[k]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto at = values[i] < 0 ? values[i] + extent : values[i];
      if (p.out_of_range == OutOfRange::clamp)
        at = std::clamp<std::int64_t>(at, 0, std::max<std::int64_t>(extent - 1, 0));
      if (positions[i] < 0) continue;
      positions[i] =
          at < box[d].start || at >= box[d].stop ? -1 : positions[i] * box[d].size() + at - box[d].start;
    }
  }
  return positions;
}

// The block as (dims before, addressed dims, dims after).
kernels::AxisView view_of(const Shape& block, const GatherParams& p) {
  kernels::AxisView view;
  for (int d = 0; d < block.ndim(); ++d)
    (d < p.first ? view.outer : d < p.first + p.count ? view.extent : view.inner) *= block[d];
  return view;
}

// The dims before the addressed ones, A, and those after them.
RuleReading read_dims(const Params& params, std::span<const Shape>) {
  return {{{{'L', params_of(params).first}, {'A', params_of(params).count}}}, {}};
}

std::vector<Array> index_inputs(std::span<const Array> in, const GatherParams& p) {
  return {in.begin() + 1, in.begin() + 1 + p.count};
}

const Rule gather_rule("L.. A.. R.., {I..} -> L.. I.. R.. | sum A", read_dims);

// The one addressed dim of x that is split; -1 when none or several are.
int split_dim(const std::vector<std::vector<int>>& axes, const GatherParams& p) {
  int found = -1;
  for (int d = p.first; d < p.first + p.count; ++d) {
    if (axes[d].empty()) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

// Both x (along an addressed dim) and the list of indices split over the same mesh axes: one of them would
// have to become whole, so ranks ask each other for what their part of the list names, where that moves
// less. Nothing: not such a case.
std::optional<Placement> place_fetch(const PlaceArgs& args, const GatherParams& p, std::int64_t& bytes) {
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

Placement place_gather(const PlaceArgs& args) {
  const auto& p = params_of(args.params);
  std::int64_t bytes = 0, fetch_bytes = 0;
  auto placement = place_by(gather_rule, args, &bytes);
  if (auto fetching = place_fetch(args, p, fetch_bytes); fetching && fetch_bytes < bytes)
    return std::move(*fetching);
  return placement;
}

// Split along an addressed dim, and yet nothing is left to be added up.
std::vector<TalkCost> fetch_cost(const PlaceArgs& args, const Placement& placement) {
  const auto& p = params_of(args.params);
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim());
  const int dim = split_dim(axes, p);
  if (dim < 0 || !placement.partial_axes.empty()) return {};
  const auto item = static_cast<std::int64_t>(itemsize(args.out[0].dtype));
  const auto named = placement.inputs[1].shard_shape(args.in[1].shape).elements() *
                     static_cast<std::int64_t>(sizeof(std::int64_t));
  const auto rows = placement.outputs[0].shard_shape(args.out[0].shape).elements() * item;
  return {{"all-to-all", axes[dim], rows + named, 2}};
}

void talk_gather(const TalkArgs& args) {
  const auto& a = args.local;
  const auto& p = params_of(a.params);
  const Tile &x = a.in[0], &out = a.out[0];
  const int ndim = static_cast<int>(x.box.size()), dim = split_dim(args.in_layouts[0].dim_axes(ndim), p);
  const auto& comm = group_of_dim(args.in_layouts[0], dim, ndim, args.me);
  const auto extent = x.global[dim];
  const auto block = block_size(extent, comm.size());
  Box box = x.box;
  box[dim] = {0, extent};
  const auto places =
      positions_in_block(a.in.subspan(1), x.global, box, p);  // in a block that holds all of the split dim
  FetchList list;
  std::int64_t inner = 1;
  for (int d = dim + 1; d < p.first + p.count; ++d) inner *= x.global[d];
  for (const auto place : places) {
    if (place < 0) {
      list.add(-1, 0);
      continue;
    }
    const auto at = place / inner % extent, owner = at / block;
    const auto own = block_range(extent, comm.size(), owner);
    list.add(static_cast<int>(owner),
             (place / inner / extent * own.size() + at - own.start) * inner + place % inner);
  }
  fetch(comm, list, out.dtype, view_of(x.shape(), p), x.data, out.data);
}

// ---- gather: x, indices... ----
// A split addressed dim makes the result partial: every rank gives the elements that it holds and zeros
// elsewhere; or ranks fetch from each other.
const OpDef gather_op{
    .name = "gather",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      const auto& p = params_of(params);
      return {{gathered_shape(in[0].shape, in[1].shape, p.first, p.count), in[0].dtype}};
    },
    .sharding = Place{place_gather, &gather_rule},
    .runs = Talk{.together = talk_gather,
                 .cost = fetch_cost,
                 .alone =
                     [](const KernelArgs& a) {
                       const auto& p = params_of(a.params);
                       const auto positions =
                           positions_in_block(a.in.subspan(1), a.in[0].global, a.in[0].box, p);
                       kernels::gather(a.out[0].data, a.in[0].data, view_of(a.in[0].shape(), p), positions,
                                       itemsize(a.out[0].dtype));
                     }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      Cotangents result(v.in.size());
      if (v.wanted[0])
        result[0] = scatter_add_zeros(v.in[0].shape(), index_inputs(v.in, p), v.cotangents[0], p.first,
                                      p.out_of_range);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = params_of(*args.node.params);
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
      // Both: the batch number is one more index.
      std::vector<std::int64_t> column(indices[0].shape().size(), 1);
      column[0] = args.size;
      indices.insert(indices.begin(),
                     broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
      return {
          {gather(moveaxis(args.in[0], args.dims[0], p.first), std::move(indices), p.first, p.out_of_range)},
          {p.first}};
    },
    .linear = Linear::in_first,
};

// ---- scatter: x, indices..., updates ----
// Every rank applies the updates that fall into its block; so it must see all of them along the addressed
// dims.
Cotangents scatter_vjp(const VjpArgs& v) {
  const auto& p = params_of(*v.node.params);
  const Array &x = v.in[0], &updates = v.in.back(), &g = v.cotangents[0];
  const auto indices = index_inputs(v.in, p);
  const auto read = [&](const Array& from) { return gather(from, indices, p.first, OutOfRange::drop); };
  Cotangents result(v.in.size());
  Array of_x = g, of_updates;
  if (p.op == "set") {
    if (v.wanted[0]) of_x = scatter("set", g, indices, zeros_like(updates), p.first, p.out_of_range);
    if (v.wanted.back()) of_updates = read(g);
  } else if (p.op == "add") {
    if (v.wanted.back()) of_updates = read(g);
  } else if (p.op == "multiply") {
    if (v.wanted[0]) of_x = scatter("multiply", g, indices, updates, p.first, p.out_of_range);
    if (v.wanted.back()) of_updates = read(g * x);
  } else {  // min, max: to those that were chosen
    if (v.wanted[0]) of_x = where(v.out[0] == x, g, zeros_like(g));
    if (v.wanted.back()) of_updates = where(read(v.out[0]) == updates, read(g), zeros_like(updates));
  }
  if (v.wanted[0]) result[0] = of_x;
  result.back() = of_updates;
  return result;
}

Batched scatter_batch(const BatchArgs& args) {
  auto p = params_of(*args.node.params);
  bool any_index = false;
  for (int k = 0; k < p.count; ++k) any_index |= args.dims[1 + k] != not_batched;
  Array x = batched_in_front(args, 0), updates = batched_in_front(args, args.in.size() - 1);
  if (!any_index)
    return {{scatter(p.op, x, index_inputs(args.in, p), updates, p.first + 1, p.out_of_range)}, {0}};
  std::vector<Array> indices;
  for (int k = 0; k < p.count; ++k) indices.push_back(batched_in_front(args, 1 + k));
  std::vector<std::int64_t> column(indices[0].shape().size(), 1);
  column[0] = args.size;
  indices.insert(indices.begin(),
                 broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
  return {{scatter(p.op, moveaxis(x, 0, p.first), std::move(indices), moveaxis(updates, 0, p.first), p.first,
                   p.out_of_range)},
          {p.first}};
}

const OpDef scatter_op{
    .name = "scatter",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = Rule("L.. A.. R.., {I..}, L.. I.. R.. -> L.. A.. R.. | whole I", read_dims),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = params_of(a.params);
      const Tile& out = a.out[0];
      if (out.elements() == 0) return;
      std::memcpy(out.data, a.in[0].data, out.bytes());
      const auto positions = positions_in_block(a.in.subspan(1), out.global, out.box, p);
      if (!positions.empty())
        kernels::scatter(p.op, out.dtype, out.data, view_of(out.shape(), p), positions, a.in.back().data);
    }},
    .vjp = scatter_vjp,
    .batch = scatter_batch,
};

// ---- scatter_add_zeros: indices..., updates ----
const OpDef scatter_add_op{
    .name = "scatter_add",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      return {{params_of(params).shape, in.back().dtype}};
    },
    .sharding = Rule("{I..}, L.. I.. R.. -> L.. A.. R.. | sum I", read_dims),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = params_of(a.params);
      const Tile& out = a.out[0];
      if (out.elements() == 0) return;
      std::memset(out.data, 0, out.bytes());
      const auto positions = positions_in_block(a.in, out.global, out.box, p);
      if (!positions.empty())
        kernels::scatter("add", out.dtype, out.data, view_of(out.shape(), p), positions, a.in.back().data);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      Cotangents result(v.in.size());
      if (v.wanted.back())
        result.back() = gather(v.cotangents[0], {v.in.begin(), v.in.end() - 1}, p.first,
                               p.out_of_range == OutOfRange::clamp ? OutOfRange::clamp : OutOfRange::drop);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = params_of(*args.node.params);
      const Array updates = batched_in_front(args, args.in.size() - 1);
      std::vector<Array> indices;
      bool any_index = false;
      for (std::size_t k = 0; k + 1 < args.in.size(); ++k) any_index |= args.dims[k] != not_batched;
      auto extents = p.shape.vector();
      extents.insert(extents.begin() + (any_index ? p.first : 0), args.size);
      if (!any_index)
        return {{scatter_add_zeros(Shape(std::move(extents)), {args.in.begin(), args.in.end() - 1}, updates,
                                   p.first + 1, p.out_of_range)},
                {0}};
      for (std::size_t k = 0; k + 1 < args.in.size(); ++k) indices.push_back(batched_in_front(args, k));
      std::vector<std::int64_t> column(indices[0].shape().size(), 1);
      column[0] = args.size;
      indices.insert(indices.begin(),
                     broadcast_to(reshape(arange(args.size), Shape(std::move(column))), indices[0].shape()));
      return {{scatter_add_zeros(Shape(std::move(extents)), std::move(indices), moveaxis(updates, 0, p.first),
                                 p.first, p.out_of_range)},
              {p.first}};
    },
};

const Registered registered[] = {Registered(gather_op), Registered(scatter_op), Registered(scatter_add_op)};

}  // namespace

Array gather(const Array& x, std::vector<Array> indices, int first, OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range};
  indices.insert(indices.begin(), x);
  return record(gather_op, make_params(p), std::move(indices));
}

Array scatter(const std::string& op, const Array& x, std::vector<Array> indices, const Array& updates,
              int first, OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range, op};
  indices.insert(indices.begin(), x);
  indices.push_back(updates);
  return record(scatter_op, make_params(p), std::move(indices));
}

Array scatter_add_zeros(const Shape& shape, std::vector<Array> indices, const Array& updates, int first,
                        OutOfRange out_of_range) {
  const GatherParams p{first, static_cast<int>(indices.size()), out_of_range, "add", shape};
  indices.push_back(updates);
  return record(scatter_add_op, make_params(p), std::move(indices));
}

}  // namespace tessera
