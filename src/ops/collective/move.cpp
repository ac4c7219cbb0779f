// all_gather, psum_scatter, all_to_all, ppermute, pbroadcast over manual axes: blocks move between ranks.
#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "graph/hooks.hpp"
#include "kernels/move/copy.hpp"
#include "ops/build.hpp"
#include "ops/collective/collective.hpp"
#include "ops/collective/manual.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"

namespace tessera {

GroupOf group_of(const Mesh& mesh, const CollectiveParams& p, int me) {
  const auto all = group_along(mesh, p.axes, me);
  const auto number = static_cast<int>(std::find(all.begin(), all.end(), me) - all.begin());
  if (p.groups.empty()) return {all, number};
  GroupOf result;
  for (const auto& group : p.groups) {
    const auto found = std::find(group.begin(), group.end(), number);
    if (found == group.end()) continue;
    result.me = static_cast<int>(found - group.begin());
    for (const int n : group) result.ids.push_back(all[n]);
  }
  return result;
}

namespace {

const CollectiveParams& params_of(const Params& p) { return p.as<CollectiveParams>(); }

Shape scaled(const Shape& shape, int dim, std::int64_t times, std::int64_t parts) {
  Shape extents = shape;
  extents[dim] = extents[dim] * times / parts;
  return extents;
}

// A slab of a dense tile: `n` indices of `dim`, starting at `from`. Copied to or from dense memory.
struct Slab {
  std::int64_t offset;
  std::vector<std::int64_t> strides;
  Shape extents;
  std::vector<std::int64_t> dense;
};
Slab slab_of(const Shape& tile, int dim, std::int64_t from, std::int64_t n) {
  Slab s{0, row_major_strides(tile), tile, {}};
  s.extents[dim] = n;
  s.offset = from * s.strides[dim];
  s.dense = row_major_strides(s.extents);
  return s;
}
void unpack(std::byte* tile, const Shape& shape, int dim, std::int64_t from, std::int64_t n,
            const std::byte* dense, std::size_t item) {
  const auto s = slab_of(shape, dim, from, n);
  kernels::copy_strided(tile + s.offset * static_cast<std::int64_t>(item), s.strides, dense, s.dense,
                        s.extents, item);
}
void pack(std::byte* dense, const std::byte* tile, const Shape& shape, int dim, std::int64_t from,
          std::int64_t n, std::size_t item) {
  const auto s = slab_of(shape, dim, from, n);
  kernels::copy_strided(dense, s.dense, tile + s.offset * static_cast<std::int64_t>(item), s.strides,
                        s.extents, item);
}
bool leads(const Shape& shape, int dim) {
  return std::all_of(shape.begin(), shape.begin() + dim, [](std::int64_t n) { return n == 1; });
}

Placement place_whole(const PlacementArgs& args, bool second) {
  const auto& p = params_of(args.params);
  DimAxes dims(args.in[0].shape.size());
  if (args.shardings[0] && args.shardings[0]->mesh() == args.mesh)
    dims = args.shardings[0]->dim_axes(args.in[0].shape.ndim());
  if (!dims.empty()) dims[p.dim].clear();
  if (second) dims[p.other].clear();
  const auto layout = Sharding::from_dim_axes(args.mesh, dims);
  return {{layout}, {layout}, {}, ReduceKind::sum};
}
Placement place_one_dim(const PlacementArgs& args) { return place_whole(args, false); }
Placement place_two_dims(const PlacementArgs& args) { return place_whole(args, true); }
Placement place_any(const PlacementArgs& args) {
  const auto layout = args.shardings[0] ? *args.shardings[0] : Sharding::replicated(args.mesh);
  return {{layout}, {layout}, {}, ReduceKind::sum};
}

std::int64_t block_bytes(const Type& type, const Sharding& layout) {
  return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
}

// A group of one copies its operand.
void keep(const KernelArgs& a) {
  if (a.out[0].bytes() > 0) std::memcpy(a.out[0].data, a.in[0].data, a.out[0].bytes());
}

std::uint64_t varies(std::span<const std::uint64_t> in, const Params& p) {
  return in[0] | axes_mask(params_of(p).axes);
}
// The result is equal on all ranks, unless there are groups.
std::uint64_t becomes_equal(std::span<const std::uint64_t> in, const Params& p) {
  return params_of(p).groups.empty() ? in[0] & ~axes_mask(params_of(p).axes) : varies(in, p);
}

Array inside(const VjpArgs& v) {
  return v.node.region ? brought_inside(v.cotangents[0], v.node.region) : v.cotangents[0];
}
Cotangents as_first(const VjpArgs& v, Array ct) {
  Cotangents result(v.in.size());
  result[0] = std::move(ct);
  return result;
}

// ---- all_gather ----
void communicate_all_gather(const CommunicationArgs& args) {
  const auto& p = params_of(args.local.params);
  const auto members = group_of(args.mesh, p, args.me);
  const Tile &in = args.local.in[0], &out = args.local.out[0];
  const Shape shape = out.shape();
  const auto n = in.shape()[p.dim];
  const auto& group = comm::group(members.ids);
  if (leads(shape, p.dim)) return comm::all_gather(group, in.data, in.bytes(), out.data);
  Buffer blocks = Buffer::allocate(out.bytes());
  comm::all_gather(group, in.data, in.bytes(), blocks.data());
  for (std::size_t m = 0; m < members.ids.size(); ++m)
    unpack(out.data, shape, p.dim, static_cast<std::int64_t>(m) * n, n,
           blocks.data() + static_cast<std::int64_t>(m) * in.bytes(), itemsize(out.dtype));
}

// This rank's block of a value that is equal on all ranks.
Array own_block(const Array& x, const CollectiveParams& p);

// With the checker the cotangent is one value for all ranks, and each rank takes the part of its block. If
// that value is a pending sum over the ranks, summing and taking are one reduce-scatter.
Cotangents all_gather_vjp(const VjpArgs& v) {
  const auto& p = params_of(*v.node.params);
  const Array ct = inside(v);
  const bool one_value = p.frame == 0 && p.groups.empty() && v.node.region->check_varying;
  if (!one_value) return as_first(v, record_collective(psum_scatter_op, p, ct));
  const auto& node = *ct.node();
  if (node.op == &psum_op && !node.inputs.empty() && params_of(*node.params).axes == p.axes)
    return as_first(v, record_collective(psum_scatter_op, p, node.inputs[0]));
  return as_first(v, own_block(ct, p));
}

// ---- psum_scatter ----
void communicate_psum_scatter(const CommunicationArgs& args) {
  const auto& p = params_of(args.local.params);
  const auto members = group_of(args.mesh, p, args.me);
  const Tile &in = args.local.in[0], &out = args.local.out[0];
  const Shape shape = in.shape();
  const auto n = out.shape()[p.dim];
  const std::byte* terms = in.data;
  Buffer blocks;
  if (!leads(shape, p.dim)) {
    blocks = Buffer::allocate(in.bytes());
    terms = blocks.data();
    for (std::size_t m = 0; m < members.ids.size(); ++m)
      pack(blocks.data() + static_cast<std::int64_t>(m) * out.bytes(), in.data, shape, p.dim,
           static_cast<std::int64_t>(m) * n, n, itemsize(in.dtype));
  }
  const std::vector<std::int64_t> counts(members.ids.size(), out.elements());
  comm::reduce_scatter(comm::group(members.ids), ReduceKind::sum, in.dtype, terms, out.data, counts);
}

// ---- all_to_all ----
void communicate_all_to_all(const CommunicationArgs& args) {
  const auto& p = params_of(args.local.params);
  const auto members = group_of(args.mesh, p, args.me);
  const Tile &in = args.local.in[0], &out = args.local.out[0];
  const Shape from = in.shape(), to = out.shape();
  const auto size = static_cast<std::int64_t>(members.ids.size());
  const auto n_split = from[p.dim] / size, n_concat = to[p.other] / size;
  const auto bytes = in.bytes() / size;
  const auto item = itemsize(in.dtype);
  Buffer sent = Buffer::allocate(in.bytes()), received = Buffer::allocate(in.bytes());
  std::vector<comm::Message> sends, receives;
  std::vector<std::int64_t> from_member;
  for (std::int64_t m = 0; m < size; ++m) {
    pack(sent.data() + m * bytes, in.data, from, p.dim, m * n_split, n_split, item);
    if (m == members.me || bytes == 0) continue;
    sends.push_back({members.ids[m], sent.data() + m * bytes, bytes});
    receives.push_back({members.ids[m], received.data() + m * bytes, bytes});
    from_member.push_back(m);
  }
  comm::exchange(
      comm::world(), sends, receives,
      [&](std::size_t i) {
        unpack(out.data, to, p.other, from_member[i] * n_concat, n_concat, receives[i].data, item);
      },
      args.label.c_str());
  unpack(out.data, to, p.other, members.me * n_concat, n_concat, sent.data() + members.me * bytes, item);
}

// ---- ppermute, pbroadcast ----
void communicate_ppermute(const CommunicationArgs& args) {
  const auto& p = params_of(args.local.params);
  const auto members = group_of(args.mesh, p, args.me);
  const Tile &in = args.local.in[0], &out = args.local.out[0];
  std::vector<comm::Message> sends, receives;
  bool receives_something = false;
  for (const auto& [source, destination] : p.pairs) {
    if (source == members.me && destination == members.me) {
      keep(args.local);
      receives_something = true;
    } else if (source == members.me) {
      sends.push_back({members.ids[destination], in.data, in.bytes()});
    } else if (destination == members.me) {
      receives.push_back({members.ids[source], out.data, out.bytes()});
      receives_something = true;
    }
  }
  if (!receives_something) std::memset(out.data, 0, out.bytes());
  if (in.bytes() == 0 || (sends.empty() && receives.empty())) return;
  comm::exchange(
      comm::world(), sends, receives, [](std::size_t) {}, args.label.c_str());
}

void communicate_pbroadcast(const CommunicationArgs& args) {
  const auto& p = params_of(args.local.params);
  const auto members = group_of(args.mesh, p, args.me);
  if (p.pairs[0].first == members.me) keep(args.local);
  comm::broadcast(comm::group(members.ids), args.local.out[0].data, args.local.out[0].bytes(),
                  p.pairs[0].first);
}

std::vector<std::pair<int, int>> reversed(const std::vector<std::pair<int, int>>& pairs) {
  std::vector<std::pair<int, int>> result;
  for (const auto& [source, destination] : pairs) result.emplace_back(destination, source);
  return result;
}

template <int gathered>
std::vector<CommunicationCost> cost_of(const PlacementArgs& args, const Placement& placement) {
  const auto& p = params_of(args.params);
  const auto n = p.group_size(), in = block_bytes(args.in[0], placement.inputs[0]),
             out = block_bytes(args.out[0], placement.outputs[0]);
  if (n == 1) return {};
  if constexpr (gathered == 0)
    return {{"all-gather", p.axes, (n - 1) * in, 1}};
  else if constexpr (gathered == 1)
    return {{"reduce-scatter", p.axes, (n - 1) * out, 1}};
  else if constexpr (gathered == 2)
    return {{"all-to-all", p.axes, (n - 1) * (in / n), 1}};
  else if constexpr (gathered == 3) {
    const bool moves = std::any_of(p.pairs.begin(), p.pairs.end(),
                                   [](const auto& pair) { return pair.first != pair.second; });
    return {{"collective-permute", p.axes, moves ? out : 0, 1}};
  } else
    return {{"collective-broadcast", p.axes, out, 1}};
}

}  // namespace

const OpDef all_gather_op{
    .name = "all_gather",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& q) -> std::vector<Type> {
      return {{scaled(in[0].shape, params_of(q).dim, params_of(q).group_size(), 1), in[0].dtype}};
    },
    .sharding = PlacementRule{place_one_dim},
    .runs = Communicating{.together = communicate_all_gather, .cost = cost_of<0>, .alone = keep},
    .vjp = all_gather_vjp,
    .batch = batch_collective,
    .varying = becomes_equal,
};
const OpDef psum_scatter_op{
    .name = "psum_scatter",
    .infer = [](std::span<const Type> in, const Params& q) -> std::vector<Type> {
      return {{scaled(in[0].shape, params_of(q).dim, 1, params_of(q).group_size()), in[0].dtype}};
    },
    .sharding = PlacementRule{place_one_dim},
    .runs = Communicating{.together = communicate_psum_scatter, .cost = cost_of<1>, .alone = keep},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      return as_first(v, record_collective(all_gather_op, params_of(*v.node.params), inside(v)));
    },
    .batch = batch_collective,
    .varying = varies,
    .same_bits = SameBits::always,
};
const OpDef all_to_all_op{
    .name = "all_to_all",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& q) -> std::vector<Type> {
      const auto& p = params_of(q);
      return {
          {scaled(scaled(in[0].shape, p.dim, 1, p.group_size()), p.other, p.group_size(), 1), in[0].dtype}};
    },
    .sharding = PlacementRule{place_two_dims},
    .runs = Communicating{.together = communicate_all_to_all, .cost = cost_of<2>, .alone = keep},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      auto p = params_of(*v.node.params);
      std::swap(p.dim, p.other);
      return as_first(v, record_collective(all_to_all_op, p, inside(v)));
    },
    .batch = batch_collective,
    .varying = varies,
};
const OpDef ppermute_op{
    .name = "ppermute",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place_any},
    .runs = Communicating{.together = communicate_ppermute,
                          .cost = cost_of<3>,
                          .alone =
                              [](const KernelArgs& a) {
                                if (!params_of(a.params).pairs.empty())
                                  keep(a);
                                else
                                  std::memset(a.out[0].data, 0, a.out[0].bytes());
                              }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      auto p = params_of(*v.node.params);
      p.pairs = reversed(p.pairs);
      return as_first(v, record_collective(ppermute_op, p, inside(v)));
    },
    .batch = batch_collective,
    .varying = varies,
};
const OpDef pbroadcast_op{
    .name = "pbroadcast",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = PlacementRule{place_any},
    .runs = Communicating{.together = communicate_pbroadcast, .cost = cost_of<4>, .alone = keep},
    // The source's block gets the sum of all copies' cotangents; with the checker there is one copy and one
    // cotangent.
    .vjp = [](const VjpArgs& v) -> Cotangents {
      const auto& p = params_of(*v.node.params);
      Array ct = inside(v);
      if (p.frame != 0)
        ct = record_collective(psum_op, p, ct);
      else if (!v.node.region->check_varying)
        ct = sum_over(ct, p.axes);
      const Array me = p.frame != 0 ? p.index : place_along(v.node.region, p.axes);
      return as_first(v, where(me == p.pairs[0].first, ct, zeros_like(ct)));
    },
    .batch = batch_collective,
    .varying = becomes_equal,
};

namespace {

// out = in[index * n : (index + 1) * n] along dim, for a scalar index that the rank holds.
const OpDef own_block_op{
    .name = "own_block",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& q) -> std::vector<Type> {
      return {{scaled(in[0].shape, params_of(q).dim, 1, params_of(q).size), in[0].dtype}};
    },
    .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
      auto placement = place_one_dim(args);
      placement.inputs.push_back(Sharding::replicated(args.mesh));
      return placement;
    }},
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = params_of(a.params);
      const auto n = a.out[0].shape()[p.dim];
      pack(a.out[0].data, a.in[0].data, a.in[0].shape(), p.dim, *a.in[1].as<std::int32_t>() * n, n,
           itemsize(a.in[0].dtype));
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      return as_first(v, record_collective(all_gather_op, params_of(*v.node.params), inside(v)));
    },
    .batch = batch_collective,
    .varying = varies,
};

Array own_block(const Array& x, const CollectiveParams& p) {
  return record(own_block_op, make_params(p), {x, place_along(x.node()->region, p.axes)});
}

const Registered registered[] = {Registered(all_gather_op), Registered(psum_scatter_op),
                                 Registered(all_to_all_op), Registered(ppermute_op),
                                 Registered(pbroadcast_op), Registered(own_block_op)};

}  // namespace

Array record_collective(const OpDef& op, const CollectiveParams& p, const Array& x) {
  if (p.frame != 0) return record(op, make_params(p), {x, p.index});
  Array operand = x;
  // With the checker every operand must be marked as varying: a value equal on all ranks gets a pvary, so
  // that its cotangent is the sum over the ranks that use it.
  const auto& region = operand.node()->region;
  const auto missing = axes_mask(p.axes) & ~output_of(operand).varying;
  if (region->check_varying && missing != 0 && operand.node()->traced)
    operand = region_hooks().vary(operand, missing);
  return record(op, make_params(p), {std::move(operand)});
}

Array place_along(const RegionPtr& region, const std::vector<int>& axes) {
  const auto is_own = [&](int axis) {
    return !region->parent ||
           !std::binary_search(region->parent->manual_axes.begin(), region->parent->manual_axes.end(), axis);
  };
  if (!axes.empty() &&
      std::all_of(axes.begin(), axes.end(), is_own)) {  // one element of 0, 1, 2, ... sharded over the axes
    const Array all = arange_of(std::int64_t{0}, devices_along(region->mesh, axes), 1, int32);
    return reshape(enter_region(all, region, {axes}), Shape{});
  }
  if (axes.size() == 1) return brought_inside(place_along(region->parent, axes), region);
  Array place = make_scalar(0, int32);
  for (const int a : axes) place = place * region->mesh.axis_sizes()[a] + place_along(region, {a});
  return place;
}

}  // namespace tessera
