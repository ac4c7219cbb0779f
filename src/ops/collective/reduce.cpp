// psum, pmax, pmin. Over all ranks of manual axes the operand is only declared to be a term: the planner
// combines terms when the result is needed, several small ones in one message, and applies linear ops to the
// terms first.
#include "comm/collectives/collectives.hpp"
#include "ops/build.hpp"
#include "ops/collective/collective.hpp"
#include "ops/collective/manual.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

std::vector<Type> same_type(std::span<const Type> in, const Params&) { return {in[0]}; }

template <ReduceKind kind> Placement place_terms(const PlacementArgs& args) {
  const Sharding layout = args.shardings[0] ? *args.shardings[0] : Sharding::replicated(args.mesh);
  const auto of_bool = kind == ReduceKind::max ? ReduceKind::any : ReduceKind::all;
  return {{layout},
          {layout},
          args.params.as<CollectiveParams>().axes,
          is_bool(args.in[0].dtype) ? of_bool : kind};
}

// JAX's two conventions. With the checker the result is one value for all ranks, and so is its cotangent:
// each rank's term gets it. Without the checker every rank's copy of the result counts: the copies'
// cotangents are summed.
Cotangents psum_vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<CollectiveParams>();
  Cotangents result(v.in.size());
  const auto& region = v.node.region;
  if (p.frame == 0 && region && region->check_varying)
    result[0] = v.cotangents[0];
  else if (p.frame == 0)
    result[0] = sum_over(brought_inside(v.cotangents[0], region), p.axes);
  else
    result[0] = record_collective(psum_op, p, v.cotangents[0]);
  return result;
}

Cotangents psum_groups_vjp(const VjpArgs& v) {
  Cotangents result(v.in.size());
  const auto& p = v.node.params->as<CollectiveParams>();
  const Array ct = p.frame == 0 ? brought_inside(v.cotangents[0], v.node.region) : v.cotangents[0];
  result[0] = record_collective(psum_groups_op, p, ct);
  return result;
}

constexpr NoRule no_vjp_of_extremum{
    "the rank that holds the extremum is not known where the cotangents are; use psum, or a maximum of "
    "gathered values"};

// The op over all ranks: the program builder combines the terms.
OpDef all_ranks(const char* name, Placement (*place)(const PlacementArgs&), decltype(OpDef::vjp) vjp) {
  OpDef op;
  op.name = name;
  op.infer = same_type;
  op.sharding = PlacementRule{place};
  op.runs = Alias{};
  op.vjp = vjp;
  op.batch = batch_collective;
  op.varying = [](std::span<const std::uint64_t> in, const Params& p) -> std::uint64_t {
    return in[0] & ~axes_mask(p.as<CollectiveParams>().axes);
  };
  return op;
}

// ---- by groups: the members of each group combine among themselves ----
Placement place_as_it_is(const PlacementArgs& args) {
  const Sharding layout = args.shardings[0] ? *args.shardings[0] : Sharding::replicated(args.mesh);
  return {{layout}, {layout}, {}, ReduceKind::sum};
}

template <ReduceKind kind> void communicate_in_groups(const CommunicationArgs& args) {
  const auto& p = args.local.params.as<CollectiveParams>();
  const auto members = group_of(args.mesh, p, args.me);
  const Tile &in = args.local.in[0], &out = args.local.out[0];
  comm::all_reduce(comm::group(members.ids), kind, in.dtype, in.data, out.data, in.elements());
}

std::vector<CommunicationCost> groups_cost(const PlacementArgs& args, const Placement& placement) {
  const auto& p = args.params.as<CollectiveParams>();
  std::size_t largest = 1;
  for (const auto& group : p.groups) largest = std::max(largest, group.size());
  const auto n = static_cast<std::int64_t>(largest);
  const auto block = placement.outputs[0].shard_shape(args.out[0].shape).elements() *
                     static_cast<std::int64_t>(itemsize(args.out[0].dtype));
  return {{"all-reduce", p.axes, 2 * (n - 1) * block / n, 1}};
}

OpDef by_groups(const char* name, CommunicatingFunction communicate, decltype(OpDef::vjp) vjp) {
  OpDef op = all_ranks(name, place_as_it_is, vjp);
  op.varying = [](std::span<const std::uint64_t> in, const Params& p) -> std::uint64_t {
    return in[0] | axes_mask(p.as<CollectiveParams>().axes);
  };
  op.runs = Communicating{.together = communicate, .cost = groups_cost};
  return op;
}

// An extremum does not round: 16-bit floats are sent unconverted.
OpDef exact(OpDef op) {
  op.halves = moves_halves;
  return op;
}

// A sum of one term per rank. Its result depends on the number of ranks by definition, so that a
// ReproducibleScope accepts it unchanged.
OpDef in_order_of_ranks(OpDef op) {
  op.same_bits = SameBits::always;
  return op;
}

OpDef psum_record() {
  auto op = in_order_of_ranks(all_ranks("psum", place_terms<ReduceKind::sum>, psum_vjp));
  op.linear = Linear::in_first;
  return op;
}

}  // namespace

const OpDef psum_op = psum_record();
const OpDef pmax_op = exact(all_ranks("pmax", place_terms<ReduceKind::max>, no_vjp_of_extremum));
const OpDef pmin_op = exact(all_ranks("pmin", place_terms<ReduceKind::min>, no_vjp_of_extremum));
const OpDef psum_groups_op =
    in_order_of_ranks(by_groups("psum_groups", communicate_in_groups<ReduceKind::sum>, psum_groups_vjp));
const OpDef pmax_groups_op =
    exact(by_groups("pmax_groups", communicate_in_groups<ReduceKind::max>, no_vjp_of_extremum));
const OpDef pmin_groups_op =
    exact(by_groups("pmin_groups", communicate_in_groups<ReduceKind::min>, no_vjp_of_extremum));

namespace {
const Registered registered[] = {Registered(psum_op),        Registered(pmax_op),
                                 Registered(pmin_op),        Registered(psum_groups_op),
                                 Registered(pmax_groups_op), Registered(pmin_groups_op)};
}  // namespace

Array sum_over(const Array& x, const std::vector<int>& axes) {
  const auto& region = x.node()->region;
  const auto varying = output_of(x).varying;
  CollectiveParams p;
  std::int64_t copies = 1;
  for (const int a : axes) {
    const auto n = region->mesh.axis_sizes()[a];
    // Without the checker the copies of a traced value are differentiated separately, so the sum must be
    // recorded.
    if ((varying >> a & 1) == 0 && (region->check_varying || !x.node()->traced)) {
      copies *= n;
      continue;
    }
    p.axes.push_back(a);
    p.size *= n;
    p.names += (p.names.empty() ? "" : ",") + region->mesh.axis_names()[a];
  }
  Array result = p.axes.empty() ? x : record_collective(psum_op, p, x);
  return copies == 1 ? result : multiply(result, copies);
}

}  // namespace tessera
