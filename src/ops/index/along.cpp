#include "ops/index/along.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/move/copy.hpp"
#include "kernels/move/positions.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/groups.hpp"
#include "ops/index/fetch.hpp"

namespace tessera {
namespace {

struct AlongParams {
  int dim;
  std::int64_t extent;  // extent of a scatter's result along the dim
  template <class V> void fields(V&& visit) const {
    visit("dim", dim);
    visit("extent", extent);
  }
};
const AlongParams& params_of(const Params& p) { return p.as<AlongParams>(); }

// The indices clamped to [0, extent), as positions in a block of the dim.
kernels::Addressed clamped(std::int64_t extent, Range block) {
  return {extent, true, block.start, block.stop};
}
std::vector<std::int64_t> places_in(const Tile& indices, std::int64_t extent, Range block) {
  std::vector<std::int64_t> places(indices.elements());
  kernels::find_positions(indices.dtype, indices.data, indices.elements(), clamped(extent, block),
                          places.data());
  return places;
}

RuleReading read_dim(const Params& p, std::span<const Shape>) { return {{{{'L', params_of(p).dim}}}, {}}; }

Batched batch(const BatchArgs& args) {
  auto p = params_of(*args.node.params);
  ++p.dim;
  return {{record(*args.node.op, make_params(p), {batched_in_front(args, 0), batched_in_front(args, 1)})},
          {0}};
}

const Rule gather_along_rule("L.. a R.., L.. i R.. -> L.. i R.. | sum a", read_dim);

// x and the list split alike, also along the dim: ranks fetch the elements that their part of the list names,
// if that moves less than replicating x or the list.
Placement place_gather_along(const PlacementArgs& args) {
  const int dim = params_of(args.params).dim, ndim = args.in[0].shape.ndim();
  std::int64_t bytes = 0;
  auto placement = place_by(gather_along_rule, args, &bytes);
  if (args.wanted || !args.shardings[0] || !args.shardings[1] ||
      !(args.shardings[0]->mesh() == args.shardings[1]->mesh()))
    return placement;
  const auto x = args.shardings[0]->dim_axes(ndim), list = args.shardings[1]->dim_axes(ndim);
  if (x != list || x[dim].empty()) return placement;
  const auto element = static_cast<std::int64_t>(itemsize(args.out[0].dtype) + sizeof(std::int64_t));
  if (args.shardings[1]->shard_shape(args.in[1].shape).elements() * element >= bytes) return placement;
  return {{*args.shardings[0], *args.shardings[1]}, {*args.shardings[1]}, {}, ReduceKind::sum};
}

std::vector<CommunicationCost> fetch_along_cost(const PlacementArgs& args, const Placement& placement) {
  const auto axes = placement.inputs[0].dim_axes(args.in[0].shape.ndim())[params_of(args.params).dim];
  if (axes.empty() || !placement.partial_axes.empty()) return {};
  const auto elements = placement.inputs[1].shard_shape(args.in[1].shape).elements();
  return {{"all-to-all", axes,
           elements * static_cast<std::int64_t>(itemsize(args.out[0].dtype) + sizeof(std::int64_t)), 2}};
}

void communicate_gather_along(const CommunicationArgs& args) {
  const auto& a = args.local;
  const int dim = params_of(a.params).dim;
  const Tile &x = a.in[0], &indices = a.in[1];
  const auto extent = x.global[dim];
  const auto& comm = group_of_dim(args.in_layouts[0], dim, static_cast<int>(x.box.size()), args.me);
  const auto block = block_size(extent, comm.size());
  const auto places = places_in(indices, extent, {0, extent});
  const auto view = kernels::axis_view(indices.shape(), dim);
  FetchList list;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), outer = at / (view.extent * view.inner),
               owner = places[i] / block;
    const auto own = block_range(extent, comm.size(), owner);
    list.add(static_cast<int>(owner),
             (outer * own.size() + places[i] - own.start) * view.inner + at % view.inner);
  }
  fetch(comm, list, x.dtype, {1, x.elements(), 1}, x.data, a.out[0].data);
}

const OpDef gather_along_op{
    .name = "gather_along",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[1].shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place_gather_along, &gather_along_rule},
    .runs = Communicating{.together = communicate_gather_along,
                          .cost = fetch_along_cost,
                          .alone =
                              [](const KernelArgs& a) {
                                const int dim = params_of(a.params).dim;
                                const auto d = static_cast<std::size_t>(dim);
                                const Tile &x = a.in[0], &indices = a.in[1];
                                kernels::gather_along(
                                    a.out[0].data, x.data, kernels::axis_view(x.shape(), dim),
                                    {indices.dtype, indices.data, clamped(x.global[d], x.box[d])},
                                    indices.box[d].size(), itemsize(x.dtype));
                              }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const int dim = params_of(*v.node.params).dim;
      Cotangents result(2);
      if (v.wanted[0]) result[0] = scatter_add_along(v.in[0].shape()[dim], v.in[1], v.cotangents[0], dim);
      return result;
    },
    .batch = batch,
    .linear = Linear::in_first,
    .parts = Parts::unreduced_dims,
};

const OpDef scatter_add_along_op{
    .name = "scatter_add_along",
    .infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
      Shape shape = in[0].shape;
      shape[params_of(params).dim] = params_of(params).extent;
      return {{shape, in[1].dtype}};
    },
    .sharding = Rule("L.. i R.., L.. i R.. -> L.. a R.. | sum i", read_dim),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = params_of(a.params);
      const auto d = static_cast<std::size_t>(p.dim);
      const Tile &indices = a.in[0], &out = a.out[0];
      std::memset(out.data, 0, out.bytes());
      if (out.elements() == 0) return;
      const auto places = places_in(indices, p.extent, out.box[d]);
      kernels::scatter_along("add", out.dtype, out.data, kernels::axis_view(out.shape(), p.dim),
                             places.data(), indices.box[d].size(), a.in[1].data);
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      Cotangents result(2);
      if (v.wanted[1]) result[1] = gather_along(v.cotangents[0], v.in[0], params_of(*v.node.params).dim);
      return result;
    },
    .batch = batch,
    .parts = Parts::all_dims,
};
const Registered registered[] = {Registered(gather_along_op), Registered(scatter_add_along_op)};

}  // namespace

Array gather_along(const Array& x, const Array& indices, int dim) {
  return record(gather_along_op, make_params(AlongParams{dim, 0}), {x, indices});
}
Array scatter_add_along(std::int64_t extent, const Array& indices, const Array& updates, int dim) {
  return record(scatter_add_along_op, make_params(AlongParams{dim, extent}), {indices, updates});
}

Array take_along_axis(const Operand& x, const Operand& indices, int axis) {
  const Call call("take_along_axis", x.where);
  check_usable(x.array);
  check_usable(indices.array);
  const auto fail = [&](const std::string& why) { return call_text() + ": " + why; };
  const int ndim = x.array.ndim(), dim = checked_dim(axis, ndim);
  const auto d = static_cast<std::size_t>(dim);
  if (!is_integer(indices.array.dtype()))
    throw IndexError(fail("the indices must be integers, not " + name(indices.array.dtype()) +
                          "; convert them with astype(i, int32)"));
  if (indices.array.ndim() != ndim)
    throw ShapeError(fail("the indices have shape " + to_string(indices.array.shape()) + ", the array " +
                          to_string(x.array.shape()) + "; both must have the same number of dimensions"));
  Shape lines = x.array.shape(), list = indices.array.shape();
  if (lines[d] == 0 && list.elements() > 0)
    throw IndexError(fail("dimension " + std::to_string(dim) + " of shape " + to_string(lines) +
                          " is empty: there is nothing to take"));
  lines[d] = list[d] = 1;
  lines = list = broadcast_shapes(lines, list);
  lines[d] = x.array.shape()[d];
  list[d] = indices.array.shape()[d];
  return gather_along(broadcast_to(x, lines), broadcast_to(indices, list), dim);
}

}  // namespace tessera
