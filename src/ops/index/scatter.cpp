// Scatters: updates put, added or multiplied into places that index arrays name.
#include <algorithm>
#include <cstring>
#include <set>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/addressed.hpp"

namespace tessera {
namespace {

// ---- scatter: x, indices..., updates ----
// Every rank applies the updates that fall into its block: it sees all of them along the addressed dims, or,
// where x and the list are split over the same mesh axes, is sent its own.
// Which entries of the list are in the result, where several name one place: the others were overwritten.
Array is_last_at_its_place(const VjpArgs& v, const std::vector<Array>& indices, const GatherParams& p) {
  const Shape& list = indices[0].shape();
  const Shape addressed(std::vector<std::int64_t>(v.in[0].shape().begin() + p.first,
                                                  v.in[0].shape().begin() + p.first + p.count));
  const Array number = reshape(arange(list.elements()), list);
  const Array written = scatter("set", zeros(addressed, number.dtype()), indices, number, 0, p.out_of_range);
  const Array is_last = equal(gather(written, indices, 0, OutOfRange::drop), number);
  std::vector<std::int64_t> extents(v.in.back().shape().size(), 1);
  std::copy(list.begin(), list.end(), extents.begin() + p.first);
  return reshape(is_last, Shape(std::move(extents)));
}

// The product of the other factors at the place of each update, without dividing by a zero.
Array others_at(const Array& g, const std::vector<Array>& indices, const Array& updates,
                const GatherParams& p) {
  const auto read = [&](const Array& from) { return gather(from, indices, p.first, OutOfRange::drop); };
  const Array is_zero = updates == 0, factors = where(is_zero, ones_like(updates), updates);
  const Array zeros_there =
      read(scatter("add", zeros(g.shape(), int32), indices, astype(is_zero, int32), p.first, p.out_of_range));
  const Array product = read(scatter("multiply", g, indices, factors, p.first, p.out_of_range));
  const Array no_other_zero = where(is_zero, zeros_there == 1, zeros_there == 0);
  return where(no_other_zero, product / factors, zeros_like(product));
}

Cotangents scatter_vjp(const VjpArgs& v) {
  const auto& p = gather_params(*v.node.params);
  const Array &x = v.in[0], &updates = v.in.back(), &g = v.cotangents[0];
  const auto indices = index_inputs(v.in, p);
  const auto read = [&](const Array& from) { return gather(from, indices, p.first, OutOfRange::drop); };
  Cotangents result(v.in.size());
  if (p.op == "set") {
    if (v.wanted[0]) result[0] = scatter("set", g, indices, zeros_like(updates), p.first, p.out_of_range);
    if (v.wanted.back())
      result.back() = where(is_last_at_its_place(v, indices, p), read(g), zeros_like(updates));
  } else if (p.op == "add") {
    if (v.wanted[0]) result[0] = g;
    if (v.wanted.back()) result.back() = read(g);
  } else if (p.op == "multiply") {
    if (v.wanted[0]) result[0] = scatter("multiply", g, indices, updates, p.first, p.out_of_range);
    if (v.wanted.back()) result.back() = others_at(g * x, indices, updates, p);
  } else {  // min, max: equal ones share it
    const Array is_kept = v.out[0] == x, is_taken = read(v.out[0]) == updates;
    const Array sharing = scatter("add", astype(is_kept, g.dtype()), indices, astype(is_taken, g.dtype()),
                                  p.first, p.out_of_range);
    const Array share = g / maximum(sharing, ones_like(sharing));
    if (v.wanted[0]) result[0] = where(is_kept, share, zeros_like(g));
    if (v.wanted.back()) result.back() = where(is_taken, read(share), zeros_like(updates));
  }
  return result;
}

Batched scatter_batch(const BatchArgs& args) {
  auto p = gather_params(*args.node.params);
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

const Rule scatter_rule("L.. A.. R.., {I..}, L.. I.. R.. -> L.. A.. R.. | whole I", read_addressed);

// The mesh axes that split the list: the index arrays, and the updates in their dims.
std::set<int> list_axes(const PlaceArgs& args, const GatherParams& p) {
  std::set<int> found;
  for (std::size_t i = 1; i < args.in.size(); ++i) {
    if (!args.shardings[i]) continue;
    const auto axes = args.shardings[i]->dim_axes(args.in[i].shape.ndim());
    const bool is_updates = i + 1 == args.in.size();
    const auto first = axes.begin() + (is_updates ? p.first : 0);
    for (auto dim = first; dim != first + args.in[1].shape.ndim(); ++dim)
      found.insert(dim->begin(), dim->end());
  }
  return found;
}

// x split along one addressed dim, and the list over those mesh axes or some of them: instead of every rank
// seeing the whole list, entries travel to whose block they fall into. Nothing: not such a case.
std::optional<Placement> place_delivery(const PlaceArgs& args, const GatherParams& p, std::int64_t& bytes) {
  const Shape &x = args.in[0].shape, &list = args.in[1].shape, &updates = args.in.back().shape;
  if (!args.shardings[0] || list.ndim() == 0) return std::nullopt;
  for (const auto& sharding : args.shardings)
    if (sharding && !(sharding->mesh() == args.mesh)) return std::nullopt;
  const auto axes = args.shardings[0]->dim_axes(x.ndim());
  const int dim = split_dim(axes, p);
  const auto of_list = list_axes(args, p);
  if (dim < 0 || of_list.empty()) return std::nullopt;
  for (const int a : of_list)
    if (std::find(axes[dim].begin(), axes[dim].end(), a) == axes[dim].end()) return std::nullopt;
  const auto longest = std::max_element(list.begin(), list.end()) - list.begin();
  std::vector<std::vector<int>> entries(list.size());
  entries[longest] = axes[dim];
  auto rows = std::vector<std::vector<int>>(axes.begin(), axes.begin() + p.first);
  rows.insert(rows.end(), entries.begin(), entries.end());
  rows.insert(rows.end(), axes.begin() + p.first + p.count, axes.end());
  Placement placement{{*args.shardings[0]}, {*args.shardings[0]}, {}, ReduceKind::sum};
  for (int k = 0; k < p.count; ++k) placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, entries));
  placement.inputs.push_back(Sharding::from_dim_axes(args.mesh, rows));
  bytes = placement.inputs.back().shard_shape(updates).elements() *
              static_cast<std::int64_t>(itemsize(args.in.back().dtype)) +
          placement.inputs[1].shard_shape(list).elements() * static_cast<std::int64_t>(sizeof(std::int64_t));
  const auto parts = devices_along(args.mesh, axes[dim]);
  bytes = bytes / parts * (parts - 1);  // as many as stay at home where places are spread evenly
  return placement;
}

Placement place_scatter(const PlaceArgs& args) {
  std::int64_t bytes = 0, delivery_bytes = 0;
  auto placement = place_by(scatter_rule, args, &bytes);
  const auto& p = gather_params(args.params);
  if (auto delivery = place_delivery(args, p, delivery_bytes); delivery && delivery_bytes < bytes)
    return std::move(*delivery);
  return placement;
}

std::vector<TalkCost> delivery_cost(const PlaceArgs& args, const Placement& placement) {
  const auto& p = gather_params(args.params);
  const Shape &list = args.in[1].shape, &updates = args.in.back().shape;
  const auto of_list = placement.inputs[1].dim_axes(list.ndim());
  const bool is_split = std::any_of(of_list.begin(), of_list.end(), [](const auto& a) { return !a.empty(); });
  if (!is_split) return {};
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim());
  const auto rows = placement.inputs.back().shard_shape(updates).elements() *
                    static_cast<std::int64_t>(itemsize(args.in.back().dtype));
  const auto named =
      placement.inputs[1].shard_shape(list).elements() * static_cast<std::int64_t>(sizeof(std::int64_t));
  return {{"all-to-all", axes[split_dim(axes, p)], rows + named, 2}};
}

void talk_scatter(const TalkArgs& args) {
  const auto& a = args.local;
  const auto& p = gather_params(a.params);
  const Tile &x = a.in[0], &updates = a.in.back(), &out = a.out[0];
  const int ndim = static_cast<int>(x.box.size()), dim = split_dim(args.in_layouts[0].dim_axes(ndim), p);
  const auto& comm = group_of_dim(args.in_layouts[0], dim, ndim, args.me);
  if (out.bytes() > 0) std::memcpy(out.data, x.data, out.bytes());
  const auto indices = a.in.subspan(1, p.count);
  kernels::AxisView rows = view_of(x.shape(), p);
  rows.extent = indices[0].elements();
  deliver(comm, owners_of(indices, x, dim, comm.size(), p), out.dtype, rows, updates.data,
          [&](std::span<const std::int64_t> positions, const std::byte* values) {
            kernels::scatter(p.op, out.dtype, out.data, view_of(out.shape(), p), positions, values);
          });
}

const OpDef scatter_op{
    .name = "scatter",
    .halves = [](const Params& p) { return gather_params(p).op == "set" ? Halves::moved : Halves::widened; },
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = Place{place_scatter, &scatter_rule},
    .runs = Talk{.together = talk_scatter,
                 .cost = delivery_cost,
                 .alone =
                     [](const KernelArgs& a) {
                       const auto& p = gather_params(a.params);
                       const Tile& out = a.out[0];
                       if (out.elements() == 0) return;
                       std::memcpy(out.data, a.in[0].data, out.bytes());
                       const auto positions = positions_in_block(a.in.subspan(1), out.global, out.box, p);
                       if (!positions.empty())
                         kernels::scatter(p.op, out.dtype, out.data, view_of(out.shape(), p), positions,
                                          a.in.back().data);
                     }},
    .vjp = scatter_vjp,
    .batch = scatter_batch,
};

// ---- scatter_add_zeros: indices..., updates ----
const OpDef scatter_add_op{
    .name = "scatter_add",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      return {{gather_params(params).shape, in.back().dtype}};
    },
    .sharding = Rule("{I..}, L.. I.. R.. -> L.. A.. R.. | sum I", read_addressed),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = gather_params(a.params);
      const Tile& out = a.out[0];
      if (out.elements() == 0) return;
      std::memset(out.data, 0, out.bytes());
      const auto positions = positions_in_block(a.in, out.global, out.box, p);
      if (!positions.empty())
        kernels::scatter("add", out.dtype, out.data, view_of(out.shape(), p), positions, a.in.back().data);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = gather_params(*v.node.params);
      Cotangents result(v.in.size());
      if (v.wanted.back())
        result.back() = gather(v.cotangents[0], {v.in.begin(), v.in.end() - 1}, p.first,
                               p.out_of_range == OutOfRange::clamp ? OutOfRange::clamp : OutOfRange::drop);
      return result;
    },
    .batch = [](const BatchArgs& args) -> Batched {
      auto p = gather_params(*args.node.params);
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

const Registered registered[] = {Registered(scatter_op), Registered(scatter_add_op)};

}  // namespace

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
