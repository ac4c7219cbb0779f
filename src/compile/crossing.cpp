#include "compile/cost.hpp"

#include <algorithm>
#include <span>

#include "base/overloaded.hpp"
#include "base/rates.hpp"
#include "comm/collectives/two_level.hpp"
#include "mesh/axes.hpp"
#include "mesh/remap.hpp"
#include "program/hosts.hpp"

namespace tessera {
namespace {

std::int64_t item_bytes(const ProgramValue& value) {
  return static_cast<std::int64_t>(itemsize(value.type.dtype));
}

// Bytes of each device's block, in the group's gathering order.
std::vector<std::int64_t> blocks_of(std::vector<int>& ids, const Sharding& layout, const ProgramValue& whole,
                                    int dim) {
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
    return layout.local_box(whole.type.shape, a)[dim].start <
           layout.local_box(whole.type.shape, b)[dim].start;
  });
  std::vector<std::int64_t> bytes;
  for (const int id : ids)
    bytes.push_back(box_elements(layout.local_box(whole.type.shape, id)) * item_bytes(whole));
  return bytes;
}

std::int64_t of_gather(const ProgramValue& whole, const Sharding& from, const MeshAxes& axes, int dim) {
  return worst_group(from.mesh(), axes, [&](std::vector<int> ids) {
    const auto bytes = blocks_of(ids, from, whole, dim);
    return comm::gather_crossing_bytes(comm::group_by_host(ids), bytes);
  });
}

std::int64_t of_reduce_scatter(const ProgramValue& result, const ReduceScatter& reduction) {
  return worst_group(result.layout.mesh(), reduction.axes, [&](std::vector<int> ids) {
    const auto bytes = blocks_of(ids, result.layout, result, reduction.dim);
    return comm::reduce_scatter_crossing_bytes(comm::group_by_host(ids), bytes);
  });
}

std::int64_t of_all_reduce(const Program& program, const Instruction& i, const AllReduce& reduction) {
  std::int64_t bytes = 0;
  for (const int v : i.outputs) bytes += block_bytes(program.values[v]);
  const auto& first = program.values[i.outputs[0]];
  return worst_group(first.layout.mesh(), reduction.axes, [&](const std::vector<int>& ids) {
    const auto item = item_bytes(first);
    return comm::all_reduce_crossing_bytes(comm::group_by_host(ids), bytes / item, item, rates());
  });
}

std::int64_t of_exchange(const Program& program, const Instruction& i, const Remap& map,
                         const Sharding* from_layout, const Sharding* to_layout) {
  const auto& out = program.values[i.outputs[0]];
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  for (const int v : i.inputs) {
    from.push_back(from_layout != nullptr ? *from_layout : program.values[v].layout);
    shapes.push_back(program.values[v].type.shape);
  }
  const Sharding& to = to_layout != nullptr ? *to_layout : out.layout;
  const auto fixed = manual_axes_of(out.region);
  std::int64_t most = 0;
  for (const int me : to.mesh().device_ids()) {
    std::int64_t elements = 0;
    for (const auto& transfer : plan_exchange(map, from, shapes, to, out.type.shape, me, fixed).receives)
      if (!comm::on_one_host(transfer.peer, me)) elements += box_elements(transfer.to);
    most = std::max(most, elements * item_bytes(out));
  }
  return most;
}

std::int64_t of_communicating_call(const Mesh& mesh, const CommunicationCost& cost) {
  MeshAxes axes = cost.axes;
  if (axes.empty())
    for (int a = 0; a < mesh.ndim(); ++a) axes.push_back(a);
  const double share = share_from_other_hosts(mesh, axes);
  if (cost.kind == "broadcast") return share > 0 ? cost.bytes : 0;
  return static_cast<std::int64_t>(static_cast<double>(cost.bytes) * share);
}

std::int64_t of_move(const Program& program, const Instruction& i, const ReshardStep& step) {
  if (step.kind == StepKind::all_gather)
    return of_gather(program.values[i.outputs[0]], step.from, step.axes, step.dim);
  const auto map = identity_remap(program.values[i.outputs[0]].type.shape);
  return of_exchange(program, i, map, &step.from, &step.to);
}

}  // namespace

std::int64_t crossing_bytes(const Program& program, const Instruction& i, const CommunicationCost& cost) {
  const Mesh mesh = mesh_of(program, i);
  if (comm::host_count() == 1 || mesh.is_abstract()) return 0;
  return std::visit(
      overloaded{[&](const Move& m) { return of_move(program, i, m.step); },
                 [&](const AllReduce& r) { return of_all_reduce(program, i, r); },
                 [&](const ReduceScatter& r) { return of_reduce_scatter(program.values[i.outputs[0]], r); },
                 [&](const RemapMove& m) { return of_exchange(program, i, *m.map, nullptr, nullptr); },
                 [&](const CommunicatingCall&) { return of_communicating_call(mesh, cost); },
                 [&](const ControlFlow&) { return of_communicating_call(mesh, cost); },
                 [](const auto&) { return std::int64_t{0}; }},
      i.what);
}

}  // namespace tessera
