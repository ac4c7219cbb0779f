#include "program/builder.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace tessera {
namespace {

// Whether the change of layout needs no work: both layouts are replicated, and every device of `to` is one of
// `from`.
bool is_free(const Sharding& from, const Sharding& to, const Type& type) {
  if (!from.is_fully_replicated() && type.shape.elements() > 0) return false;
  if (!to.is_fully_replicated()) return false;
  for (const int id : to.mesh().device_ids())
    if (from.mesh().position(id) < 0) return false;
  return true;
}

bool has_layout(const ProgramValue& value, const Sharding& layout) {
  return same_layout(value.layout, layout, value.type.shape.ndim());
}

// The dim along which the combined partial terms are split into the blocks of `to`; -1: none.
int scattered_dim(const ProgramValue& from, const Sharding& to) {
  if (!(from.layout.mesh() == to.mesh())) return -1;
  const int ndim = from.type.shape.ndim();
  const DimAxes have = from.layout.dim_axes(ndim), want = to.dim_axes(ndim);
  for (int d = 0; d < ndim; ++d) {
    auto extended = have;
    extended[d].insert(extended[d].end(), from.partial_axes.begin(), from.partial_axes.end());
    if (extended != want) continue;
    const auto parts = devices_along(to.mesh(), want[d]), coarse = devices_along(to.mesh(), have[d]);
    const auto n = from.type.shape[d];
    // The fine blocks of one group must tile the group's coarse block.
    if (coarse == 1 || block_size(n, parts) * (parts / coarse) == block_size(n, coarse)) return d;
  }
  return -1;
}

}  // namespace

int ProgramBuilder::add_value(Type type, Sharding layout, RegionPtr region) {
  program_.values.push_back({std::move(type), std::move(layout), {}, ReduceKind::sum, std::move(region)});
  const int v = static_cast<int>(program_.values.size()) - 1;
  family_of_.push_back(v);
  family_.push_back({v});
  return v;
}

void ProgramBuilder::join_family(int v, int member) {
  const int family = family_of_[v];
  family_of_[member] = family;
  family_[family].push_back(member);
}

int ProgramBuilder::add_input(Type type, Sharding layout, RegionPtr region, bool everywhere) {
  const int v = add_value(std::move(type), std::move(layout), std::move(region));
  program_.values.back().everywhere = everywhere;
  program_.inputs.push_back(v);
  return v;
}

std::vector<int> ProgramBuilder::add_results(const std::vector<int>& inputs, const std::vector<Type>& types,
                                             const std::vector<Sharding>& layouts) {
  RegionPtr region;
  for (const int v : inputs)
    if (value(v).region) region = value(v).region;
  std::vector<int> results;
  for (std::size_t i = 0; i < types.size(); ++i) results.push_back(add_value(types[i], layouts[i], region));
  return results;
}

Instruction& ProgramBuilder::emit(What what, std::vector<int> inputs, std::vector<int> outputs) {
  program_.instructions.push_back({.what = std::move(what),
                                   .op = op_,
                                   .where = called_.where,
                                   .call = called_.name,
                                   .inputs = std::move(inputs),
                                   .outputs = std::move(outputs)});
  return program_.instructions.back();
}

int ProgramBuilder::alias(int v, Type type, Sharding layout) {
  const int result = add_value(std::move(type), std::move(layout), value(v).region);
  emit(Bitcast{}, {v}, {result});
  return result;
}

std::vector<int> ProgramBuilder::kernel(const OpDef& op, ParamsPtr params, std::vector<int> inputs,
                                        std::vector<Type> out, std::vector<Sharding> layouts) {
  auto results = add_results(inputs, out, layouts);
  emit(KernelCall{std::move(params)}, std::move(inputs), results).op = &op;
  return results;
}

std::vector<int> ProgramBuilder::communicate(const OpDef& op, ParamsPtr params, std::vector<int> inputs,
                                             std::vector<Type> out, std::vector<Sharding> layouts,
                                             std::vector<CommunicationCost> costs) {
  std::int64_t bytes = 0;
  for (const auto& cost : costs) bytes += cost.bytes;
  auto results = add_results(inputs, out, layouts);
  auto& instruction =
      emit(CommunicatingCall{std::move(params), std::move(costs)}, std::move(inputs), results);
  instruction.op = &op;
  instruction.bytes = bytes;
  return results;
}

std::vector<int> ProgramBuilder::control(Control inside, std::vector<int> inputs, std::vector<Type> out,
                                         std::vector<Sharding> layouts) {
  auto results = add_results(inputs, out, layouts);
  emit(ControlFlow{std::make_shared<const Control>(std::move(inside))}, std::move(inputs), results);
  return results;
}

int ProgramBuilder::remap(Remap map, std::vector<int> inputs, Type out, Sharding layout,
                          std::span<const std::byte> fill) {
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  for (const int v : inputs) {
    from.push_back(value(v).layout);
    shapes.push_back(value(v).type.shape);
  }
  const int result = add_results(inputs, {out}, {layout})[0];
  const auto bytes = exchange_bytes(map, from, shapes, layout, out.shape, itemsize(out.dtype),
                                    manual_axes_of(value(result).region));
  RemapMove what{std::make_shared<const Remap>(std::move(map)), {fill.begin(), fill.end()}};
  emit(std::move(what), std::move(inputs), {result}).bytes = bytes;
  return result;
}

void ProgramBuilder::set_partial(int v, MeshAxes axes, ReduceKind kind) {
  auto& target = program_.values[v];
  target.partial_axes = std::move(axes);
  target.reduce_kind = kind;
  left_open_by_[v] = {op_, called_};
}

int ProgramBuilder::emit_sum(What what, int partial, const Sharding& layout, std::int64_t bytes) {
  const auto from = value(partial);
  const int result = add_value(from.type, layout, from.region);
  auto& instruction = emit(std::move(what), {partial}, {result});
  instruction.bytes = bytes;
  if (const auto found = left_open_by_.find(partial); found != left_open_by_.end()) {
    const auto& [op, called] = found->second;
    instruction.op = op, instruction.where = called.where, instruction.call = called.name;
  }
  join_family(partial, result);
  return result;
}

int ProgramBuilder::combine(int v) {
  const auto& from = value(v);
  if (from.partial_axes.empty()) return v;
  for (const int member : family_[family_of_[v]])
    if (value(member).partial_axes.empty() && has_layout(value(member), from.layout)) return member;
  const auto p = devices_along(from.layout.mesh(), from.partial_axes);
  const Sharding layout = from.layout;
  return emit_sum(AllReduce{from.partial_axes, from.reduce_kind}, v, layout,
                  2 * (p - 1) * block_bytes(from) / p);
}

// For x partial over axis a and `to` split over a on one dim: each rank combines only its own block. -1
// otherwise.
int ProgramBuilder::reduce_scatter(int v, const Sharding& to) {
  const auto& from = value(v);
  const int dim = scattered_dim(from, to);
  if (dim < 0) return -1;
  const auto p = devices_along(to.mesh(), from.partial_axes);
  const auto bytes = (p - 1) * block_bytes({from.type, to});
  return emit_sum(ReduceScatter{from.partial_axes, from.reduce_kind, dim}, v, to, bytes);
}

int ProgramBuilder::move_step(int v, const ReshardStep& step) {
  const auto from = value(v);
  const int result = add_value(from.type, step.to, from.region);
  emit(Move{step}, {v}, {result}).bytes = step.bytes;
  join_family(v, result);
  return result;
}

// Moves a value without partial terms.
int ProgramBuilder::move_from(int v, const Sharding& to) {
  const auto from = value(v);
  int result = v;
  if (from.everywhere && !(from.layout.mesh() == to.mesh())) {
    result = alias(v, from.type, Sharding::replicated(to.mesh()));
    join_family(v, result);
    return has_layout(value(result), to) ? result : move_from(result, to);
  }
  if (is_free(from.layout, to, from.type)) {
    result = alias(v, from.type, to);
    join_family(v, result);
    return result;
  }
  const auto plan =
      plan_reshard(from.layout, to, from.type.shape, from.type.dtype, manual_axes_of(from.region));
  for (const auto& step : plan.steps) result = move_step(result, step);
  if (!has_layout(value(result), to)) {  // equal blocks under other axis names
    result = alias(result, from.type, to);
    join_family(v, result);
  }
  return result;
}

int ProgramBuilder::reshard(int v, const Sharding& to) {
  if (value(v).partial_axes.empty() && has_layout(value(v), to)) return v;
  const auto members = family_[family_of_[v]];
  for (const int member : members)
    if (value(member).partial_axes.empty() && has_layout(value(member), to)) return member;
  int best = -1;
  std::int64_t least = 0;
  for (const int member : members) {
    const auto& from = value(member);
    if (!from.partial_axes.empty()) continue;
    const bool free = from.everywhere || is_free(from.layout, to, from.type);
    const auto bytes =
        free ? 0
             : plan_reshard(from.layout, to, from.type.shape, from.type.dtype, manual_axes_of(from.region))
                   .bytes;
    if (best < 0 || bytes < least) best = member, least = bytes;
  }
  if (best >= 0) return move_from(best, to);
  const int scattered = reduce_scatter(v, to);
  return scattered >= 0 ? scattered : reshard(combine(v), to);
}

}  // namespace tessera
