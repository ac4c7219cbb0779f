#include "ops/effect/host_call.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <tessera/error.hpp>

#include "comm/collectives/collectives.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "ops/build.hpp"

namespace tessera {
namespace {

struct HostCallParams {
  HostFunctionPtr function;
  std::vector<Shape> shapes;
  std::vector<Dtype> dtypes;
  bool by_one = false;
  bool by_each = false;  // by_one, and the other ranks call it, too
  template <class V> void fields(V&& visit) const {
    visit("function", function);
    visit("shapes", shapes);
    visit("dtypes", dtypes);
    visit("by_one", by_one);
    visit("by_each", by_each);
  }
};
const HostCallParams& params_of(const Params& params) { return params.as<HostCallParams>(); }

// The first output is the token, as for every effect.
std::vector<Type> infer(std::span<const Type>, const Params& params) {
  const auto& p = params_of(params);
  std::vector<Type> types{{Shape{}, int32}};
  for (std::size_t i = 0; i < p.shapes.size(); ++i) types.push_back({p.shapes[i], p.dtypes[i]});
  return types;
}

Placement place(const PlacementArgs& args) {
  Placement placement;
  const auto whole = [&](const Type& type) {
    return Sharding::from_dim_axes(args.mesh, DimAxes(type.shape.size()));
  };
  for (const auto& type : args.in) placement.inputs.push_back(whole(type));
  for (const auto& type : args.out) placement.outputs.push_back(whole(type));
  return placement;
}

void call(const CommunicationArgs& args) {
  std::vector<EffectValue> values;
  for (const Tile& tile : args.local.in.subspan(1)) values.push_back({tile.data, tile.shape(), tile.dtype});
  std::vector<std::byte*> results;
  for (const Tile& tile : args.local.out.subspan(1)) results.push_back(tile.data);
  params_of(args.local.params).function->call(values, results);
}

// A failure on the first rank throws on every rank, so that none waits for results.
void call_by_one(const CommunicationArgs& args) {
  const auto& ids = args.mesh.device_ids();
  const auto held = comm::hold_group(ids);  // the function may evaluate
  const auto& group = *held;
  std::exception_ptr failure;
  std::byte has_failed{0};
  if (group.rank() == 0 || params_of(args.local.params).by_each) try {
      call(args);
    } catch (...) {
      if (group.rank() == 0) failure = std::current_exception();
      has_failed = std::byte{1};
    }
  comm::broadcast(group, &has_failed, 1, 0);
  if (failure) std::rethrow_exception(failure);
  if (has_failed != std::byte{0})
    throw UserError(params_of(args.local.params).function->text + " has failed on rank " +
                    std::to_string(ids[0]));
  for (const Tile& tile : args.local.out.subspan(1))
    if (tile.bytes() > 0) comm::broadcast(group, tile.data, tile.bytes(), 0);
}

void run(const CommunicationArgs& args) {
  std::fill_n(args.local.out[0].data, itemsize(int32), std::byte{0});
  if (params_of(args.local.params).by_one && args.fixed_axes.empty())
    call_by_one(args);
  else
    call(args);
}

std::vector<CommunicationCost> cost(const PlacementArgs& args, const Placement&) {
  if (!params_of(args.params).by_one || !args.fixed_axes.empty()) return {};
  std::int64_t bytes = 1;
  for (const auto& type : args.out.subspan(1)) bytes += type.shape.elements() * itemsize(type.dtype);
  MeshAxes axes;
  for (std::size_t axis = 0; axis < args.mesh.axis_sizes().size(); ++axis)
    axes.push_back(static_cast<int>(axis));
  return {{"broadcast", axes, bytes, static_cast<std::int64_t>(args.out.size())}};
}

const OpDef host_call_op{
    .name = "host_call",
    .halves = moves_halves,
    .infer = infer,
    .sharding = PlacementRule{place},
    .runs = Communicating{.together = run, .cost = cost},
    .vjp = NoRule{"a function of the host has no derivative that is known: give it one with custom_vjp"},
    .batch = NoRule{"a function of the host is called for one example: map it with a loop"},
    .is_value_dependent = true,
};
const Registered registered(host_call_op);

}  // namespace

std::vector<Array> record_host_call(HostFunctionPtr f, const std::vector<Array>& values,
                                    std::vector<Type> results, Callers callers) {
  HostCallParams p{std::move(f), {}, {}, callers != Callers::all, callers == Callers::each};
  for (auto& type : results) {
    p.shapes.push_back(std::move(type.shape));
    p.dtypes.push_back(type.dtype);
  }
  std::vector<Array> in{effect_token()};
  in.insert(in.end(), values.begin(), values.end());
  auto out = record_all(host_call_op, make_params(std::move(p)), std::move(in));
  if (callers != Callers::all) set_effect_token(out[0]);
  out.erase(out.begin());
  return out;
}

}  // namespace tessera
