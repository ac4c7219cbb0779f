// manual_enter, manual_exit, pvary: none of them moves data once the operand has the layout of the spec.
//
//   global x[8] P('x') over x = 4:     rank 0: [0 1]   rank 1: [2 3]   rank 2: [4 5]   rank 3: [6 7]
//   manual_enter, spec P('x')          every rank: its x[2]; the value varies over x
//   manual_exit, spec P('x')           back to x[8] P('x')
#include "ops/collective/manual.hpp"

#include <algorithm>

#include "graph/hooks.hpp"
#include "ops/build.hpp"
#include "ops/collective/collective.hpp"
#include "ops/functions.hpp"
#include "types/extents.hpp"

namespace tessera {

std::uint64_t axes_mask(const std::vector<int>& axes) {
  std::uint64_t mask = 0;
  for (const int a : axes) mask |= std::uint64_t{1} << a;
  return mask;
}

std::vector<int> own_axes(const Region& region) {
  if (!region.parent) return region.manual_axes;
  std::vector<int> own;
  std::set_difference(region.manual_axes.begin(), region.manual_axes.end(),
                      region.parent->manual_axes.begin(), region.parent->manual_axes.end(),
                      std::back_inserter(own));
  return own;
}

namespace {

std::uint64_t mask_of(const DimAxes& dims) {
  std::uint64_t mask = 0;
  for (const auto& axes : dims) mask |= axes_mask(axes);
  return mask;
}

bool is_manual(const Region& region, int axis) {
  return std::binary_search(region.manual_axes.begin(), region.manual_axes.end(), axis);
}

// The axes that remain for the planner, per dim: the operand's axes that are not manual, if the manual blocks
// are equal and the finer blocks tile them.
DimAxes kept_axes(const Region& region, const Shape& global, const DimAxes& manual,
                  const std::optional<Sharding>& layout) {
  DimAxes kept(global.size());
  if (!layout || !(layout->mesh() == region.mesh)) return kept;
  const auto have = layout->dim_axes(global.ndim());
  for (std::size_t d = 0; d < have.size(); ++d) {
    for (const int a : have[d])
      if (!is_manual(region, a)) kept[d].push_back(a);
    const auto parts = devices_along(region.mesh, manual[d]), fine = devices_along(region.mesh, kept[d]);
    if (parts > 1 && (global[d] % parts != 0 || global[d] / parts % fine != 0)) kept[d].clear();
  }
  return kept;
}

DimAxes joined(const DimAxes& manual, const DimAxes& kept) {
  DimAxes dims = manual;
  for (std::size_t d = 0; d < dims.size(); ++d) dims[d].insert(dims[d].end(), kept[d].begin(), kept[d].end());
  return dims;
}

struct DoorParams {
  RegionPtr region;
  DimAxes dims;
  Shape global;  // manual_exit: of the result
  template <class V> void fields(V&& visit) const {
    visit("mesh", region->mesh);
    visit("manual", region->manual_axes);
    visit("check", region->check_varying);
    visit("spec", dims);
    visit("global", global);
  }
};

std::vector<Type> infer_enter(std::span<const Type> in, const Params& params) {
  const auto& p = params.as<DoorParams>();
  const auto sharding = Sharding::from_dim_axes(p.region->mesh, p.dims);
  const auto device = p.region->mesh.device_ids()[p.region->position];
  return {{box_shape(sharding.local_box(in[0].shape, device)), in[0].dtype, in[0].weak}};
}

Placement place_enter(const PlacementArgs& args) {
  const auto& p = args.params.as<DoorParams>();
  const auto kept = kept_axes(*p.region, args.in[0].shape, p.dims, args.shardings[0]);
  return {{Sharding::from_dim_axes(p.region->mesh, joined(p.dims, kept))},
          {Sharding::from_dim_axes(p.region->mesh, kept)},
          {},
          ReduceKind::sum};
}

Placement place_exit(const PlacementArgs& args) {
  const auto& p = args.params.as<DoorParams>();
  const auto kept = kept_axes(*p.region, p.global, p.dims, args.shardings[0]);
  return {{Sharding::from_dim_axes(p.region->mesh, kept)},
          {Sharding::from_dim_axes(p.region->mesh, joined(p.dims, kept))},
          {},
          ReduceKind::sum};
}

std::vector<int> unnamed_axes(const DoorParams& p) {
  std::vector<int> axes;
  for (const int a : own_axes(*p.region))
    if ((mask_of(p.dims) >> a & 1) == 0) axes.push_back(a);
  return axes;
}

// The cotangent is the sum over all ranks' copies. With the checker, pvary has already summed it over the
// axes along which a copy was combined with varying values.
Cotangents enter_vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<DoorParams>();
  Array ct = brought_inside(v.cotangents[0], p.region);
  std::vector<int> axes;
  for (const int a : unnamed_axes(p))
    if (!p.region->check_varying || (output_of(ct).varying >> a & 1) != 0) axes.push_back(a);
  if (!axes.empty()) ct = sum_over(ct, axes);
  return {exit_region(ct, p.region, p.dims, v.in[0].shape())};
}

// Without the checker the result is made of all ranks' copies, and each copy gets its share of the cotangent.
Cotangents exit_vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<DoorParams>();
  const Array ct = enter_region(v.cotangents[0], p.region, p.dims);
  const auto copies = devices_along(p.region->mesh, unnamed_axes(p));
  return {p.region->check_varying || copies == 1 ? ct : divide(ct, copies)};
}

extern const OpDef exit_op;

Batched batch_door(const BatchArgs& args) {
  auto p = args.node.params->as<DoorParams>();
  p.dims.insert(p.dims.begin() + args.dims[0], std::vector<int>{});
  if (args.node.op == &exit_op) {
    p.global = with_dim(p.global, args.dims[0], args.size);
  }
  return {{record(*args.node.op, make_params(std::move(p)), {args.in[0]})}, {args.dims[0]}};
}

const OpDef enter_op{
    .name = "manual_enter",
    .halves = moves_halves,
    .infer = infer_enter,
    .sharding = PlacementRule{place_enter},
    .runs = Alias{},
    .vjp = enter_vjp,
    .batch = batch_door,
    .varying = [](std::span<const std::uint64_t> in, const Params& p) -> std::uint64_t {
      return in[0] | mask_of(p.as<DoorParams>().dims);
    },
    .commit = [](const Params& p) -> std::optional<Mesh> { return p.as<DoorParams>().region->mesh; },
    .region = [](const Params& p, const RegionPtr&) -> RegionPtr { return p.as<DoorParams>().region; },
};
const OpDef exit_op{
    .name = "manual_exit",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{p.as<DoorParams>().global, in[0].dtype, in[0].weak}};
    },
    .sharding = PlacementRule{place_exit},
    .runs = Alias{},
    .vjp = exit_vjp,
    .batch = batch_door,
    .varying = [](std::span<const std::uint64_t> in, const Params& p) -> std::uint64_t {
      return in[0] & ~axes_mask(own_axes(*p.as<DoorParams>().region));
    },
    .region = [](const Params& p, const RegionPtr&) -> RegionPtr {
      return p.as<DoorParams>().region->parent;
    },
};

struct VaryParams {
  std::uint64_t axes;
  std::vector<int> list() const {
    std::vector<int> result;
    for (int a = 0; a < 64; ++a)
      if ((axes >> a & 1) != 0) result.push_back(a);
    return result;
  }
  template <class V> void fields(V&& visit) const { visit("axes", list()); }
};
const OpDef pvary_op{
    .name = "pvary",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[0]}; },
    .sharding = Rule("{D..} -> {D..}"),
    .runs = Alias{},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      return {
          sum_over(brought_inside(v.cotangents[0], v.node.region), v.node.params->as<VaryParams>().list())};
    },
    .batch = [](const BatchArgs& args) -> Batched {
      return {{record(*args.node.op, args.node.params, {args.in[0]})}, {args.dims[0]}};
    },
    .linear = Linear::in_first,
    .varying = [](std::span<const std::uint64_t> in, const Params& p) -> std::uint64_t {
      return in[0] | p.as<VaryParams>().axes;
    },
};
const Registered registered[] = {Registered(enter_op), Registered(exit_op), Registered(pvary_op)};

Array vary(const Array& x, std::uint64_t axes) {
  return record(pvary_op, make_params(VaryParams{axes}), {x});
}

[[maybe_unused]] const bool hooks_are_set = [] {
  region_hooks() = {brought_inside, vary};
  return true;
}();

void check_may_enter(const Array& x, const Region& region) {
  if (x.node()->region != region.parent)
    throw ShardingError(
        call_text() + ": the argument " + describe(x) +
        " belongs to another mapped function (shard_map/pmap); pass values out through their results");
  const auto& sharding = output_of(x).sharding;
  if (!sharding || sharding->mesh() == region.mesh ||
      sharding->mesh().device_ids() == region.mesh.device_ids())
    return;
  throw ShardingError(call_text() + ": the argument " + describe(x) +
                      " is committed to other devices, or to the same in another order, than " +
                      field_text(region.mesh) +
                      ". Move it first, e.g. device_put(x, NamedSharding(mesh, spec))");
}

}  // namespace

Array enter_region(const Array& x, const RegionPtr& region, DimAxes dims) {
  check_usable(x);
  Array outside = region->parent ? brought_inside(x, region->parent) : x;
  check_may_enter(outside, *region);
  dims.resize(x.ndim());
  return record(enter_op, make_params(DoorParams{region, std::move(dims), {}}), {std::move(outside)});
}

Array exit_region(const Array& x, const RegionPtr& region, DimAxes dims, Shape global) {
  Array inside = brought_inside(x, region);
  dims.resize(global.size());
  const auto missing = mask_of(dims) & ~output_of(inside).varying;
  if (region->check_varying && missing != 0 && inside.node()->traced) inside = vary(inside, missing);
  return record(exit_op, make_params(DoorParams{region, std::move(dims), std::move(global)}),
                {std::move(inside)});
}

Array brought_inside(const Array& x, const RegionPtr& region) {
  if (x.node()->region == region) return x;
  return enter_region(x, region, {});
}

}  // namespace tessera
