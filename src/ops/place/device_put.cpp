// Moves an array to a sharding given by the user.
#include <algorithm>
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/place/automatic.hpp"

#include "program/builder.hpp"

namespace tessera {
namespace {

struct PutParams {
  Sharding sharding;
  template <class V> void fields(V&& visit) const { visit("sharding", sharding); }
};

const OpDef device_put_op{
    .name = "device_put",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {in.begin(), in.end()};
    },
    // An uncommitted operand is computed in the target layout; a committed one is moved from its own.
    .sharding = PlacementRule{[](const PlacementArgs& args) -> Placement {
      const auto& target = args.params.as<PutParams>().sharding;
      return {{args.shardings[0] ? *args.shardings[0] : target}, {target}, {}, ReduceKind::sum};
    }},
    .runs = Lower{[](ProgramBuilder& builder, const Node& node, std::span<const int> in) -> std::vector<int> {
      return {builder.reshard(in[0], node.params->as<PutParams>().sharding)};
    }},
    .vjp = [](const VjpArgs& v) -> Cotangents {
      if (output_of(v.in[0]).sharding) return {device_put(v.cotangents[0], *output_of(v.in[0]).sharding)};
      return {v.cotangents[0]};
    },
    .batch = [](const BatchArgs& args) -> Batched {
      const auto& sharding = args.node.params->as<PutParams>().sharding;
      auto dims = sharding.dim_axes(args.in[0].ndim() - 1);
      dims.insert(dims.begin(), std::vector<int>{});
      const auto batched = Sharding::from_dim_axes(sharding.mesh(), dims);
      return {
          {record(*args.node.op, make_params(PutParams{batched}), {batch_first(args.in[0], args.dims[0])})},
          {0}};
    },
    .linear = Linear::in_first,
    .commit = [](const Params& p) -> std::optional<Mesh> { return p.as<PutParams>().sharding.mesh(); },
};
const Registered registered_device_put(device_put_op);

// Inside a mapped function only the axes that are not manual belong to the planner.
void check_manual_axes(const Operand& x, const Sharding& sharding) {
  const auto& region = x.array.node()->region;
  if (!region) return;
  bool fits = sharding.mesh() == region->mesh;
  for (const auto& dim : sharding.dim_axes(x.array.ndim()))
    for (const int a : dim)
      fits = fits && !std::binary_search(region->manual_axes.begin(), region->manual_axes.end(), a);
  if (!fits)
    throw ShardingError(
        call_text() + ": inside a function mapped over " + field_text(region->mesh) + " the value " +
        to_string(type_of(x.array)) + " is one rank's block; it cannot be put to " + field_text(sharding) +
        ". Move blocks with collectives (all_gather, ppermute, ...), or return it and move the result");
}

// P::automatic stands for the layout that the search has chosen; without a search (eval_shape) the layout
// stays open.
Array put_where_chosen(const Array& x, const Sharding& asked) {
  auto* layouts = open_layouts();
  if (x.node()->region || (layouts == nullptr && !x.node()->has_placeholder))
    asked.check_fits(x.shape(), call_text().c_str());
  const auto chosen = layouts != nullptr ? layouts->layout_of(call_text(), x, asked, true) : std::nullopt;
  return chosen ? record(device_put_op, make_params(PutParams{*chosen}), {x}) : x;
}

Array put(const Operand& x, const Sharding& asked, const char* name) {
  const Call call(name, x.where);
  check_usable(x.array);
  if (asked.is_automatic()) return put_where_chosen(x.array, asked);
  check_manual_axes(x, asked);
  const Sharding sharding = asked.for_ndim(x.array.ndim());
  sharding.check_fits(x.array.shape(), call_text().c_str());
  return record(device_put_op, make_params(PutParams{sharding}), {x.array});
}

}  // namespace

Array device_put(Operand x, Sharding sharding) { return put(x, sharding, "device_put"); }
Array device_put(Operand x, Mesh mesh, PartitionSpec spec) {
  const Call call("device_put", x.where);
  return put(x, NamedSharding(std::move(mesh), std::move(spec)), "device_put");
}
Array device_put(Operand x, Device device) {
  const Call call("device_put", x.where);
  return put(x, SingleDeviceSharding(std::move(device)), "device_put");
}
Array with_sharding_constraint(Operand x, Sharding sharding) {
  return put(x, sharding, "with_sharding_constraint");
}
Array with_sharding_constraint(Operand x, AutomaticSpec) {
  return put(x, Sharding::automatic(), "with_sharding_constraint");
}

}  // namespace tessera
