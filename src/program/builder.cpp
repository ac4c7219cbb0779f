#include "program/builder.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace tessera {
namespace {

int axes_product(const Mesh& mesh, const std::vector<int>& axes) {
  int product = 1;
  for (const int a : axes) product *= mesh.axis_sizes()[a];
  return product;
}

const std::vector<int>& fixed_axes_of(const ProgramValue& value) {
  static const std::vector<int> none;
  return value.region ? value.region->manual_axes : none;
}

// Both hold everything on every device of theirs, and `to` asks for no device that `from` lacks: nothing
// needs to be done.
bool is_free(const Sharding& from, const Sharding& to, const Type& type) {
  if (!from.is_fully_replicated() && type.shape.elements() > 0) return false;
  if (!to.is_fully_replicated()) return false;
  for (const int id : to.mesh().device_ids())
    if (from.mesh().position(id) < 0) return false;
  return true;
}

bool has_layout(const ProgramValue& value, const Sharding& layout) {
  const int ndim = static_cast<int>(value.type.shape.size());
  return value.layout.mesh() == layout.mesh() && value.layout.dim_axes(ndim) == layout.dim_axes(ndim);
}

}  // namespace

int ProgramBuilder::add_value(Type type, Sharding layout, RegionPtr region) {
  program_.values.push_back({std::move(type), std::move(layout), {}, "sum", std::move(region)});
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

Instruction& ProgramBuilder::emit(InstructionKind kind, std::vector<int> inputs, std::vector<int> outputs) {
  Instruction instruction{.kind = kind};
  instruction.op = op_;
  instruction.where = where_;
  instruction.inputs = std::move(inputs);
  instruction.outputs = std::move(outputs);
  program_.instructions.push_back(std::move(instruction));
  return program_.instructions.back();
}

int ProgramBuilder::alias(int v, Type type, Sharding layout) {
  const int result = add_value(std::move(type), std::move(layout), value(v).region);
  emit(InstructionKind::alias, {v}, {result});
  return result;
}

std::vector<int> ProgramBuilder::kernel(const OpDef& op, ParamsPtr params, std::vector<int> inputs,
                                        std::vector<Type> out, std::vector<Sharding> layouts) {
  RegionPtr region;
  for (const int v : inputs)
    if (value(v).region) region = value(v).region;
  std::vector<int> results;
  for (std::size_t i = 0; i < out.size(); ++i) results.push_back(add_value(out[i], layouts[i], region));
  auto& instruction = emit(InstructionKind::kernel, std::move(inputs), results);
  instruction.op = &op;
  instruction.params = std::move(params);
  return results;
}

std::vector<int> ProgramBuilder::talk(const OpDef& op, ParamsPtr params, std::vector<int> inputs,
                                      std::vector<Type> out, std::vector<Sharding> layouts,
                                      std::vector<TalkCost> costs) {
  auto results = kernel(op, std::move(params), std::move(inputs), std::move(out), std::move(layouts));
  auto& instruction = program_.instructions.back();
  instruction.kind = InstructionKind::talk;
  for (const auto& cost : costs) instruction.bytes += cost.bytes;
  instruction.costs = std::move(costs);
  return results;
}

std::vector<int> ProgramBuilder::control(Control inside, std::vector<int> inputs, std::vector<Type> out,
                                         std::vector<Sharding> layouts) {
  RegionPtr region;
  for (const int v : inputs)
    if (value(v).region) region = value(v).region;
  std::vector<int> results;
  for (std::size_t i = 0; i < out.size(); ++i) results.push_back(add_value(out[i], layouts[i], region));
  emit(InstructionKind::control, std::move(inputs), results).control =
      std::make_shared<const Control>(std::move(inside));
  return results;
}

int ProgramBuilder::remap(Remap map, std::vector<int> inputs, Type out, Sharding layout,
                          std::span<const std::byte> fill) {
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  RegionPtr region;
  for (const int v : inputs) {
    from.push_back(value(v).layout);
    shapes.push_back(value(v).type.shape);
    if (value(v).region) region = value(v).region;
  }
  static const std::vector<int> none;
  const auto bytes = exchange_bytes(map, from, shapes, layout, out.shape, itemsize(out.dtype),
                                    region ? region->manual_axes : none);
  const int result = add_value(std::move(out), std::move(layout), region);
  auto& instruction = emit(InstructionKind::remap, std::move(inputs), {result});
  instruction.remap = std::make_shared<const Remap>(std::move(map));
  instruction.bytes = bytes;
  instruction.fill.assign(fill.begin(), fill.end());
  return result;
}

void ProgramBuilder::set_partial(int v, std::vector<int> axes, std::string reduce_kind) {
  auto& target = program_.values[v];
  target.partial_axes = std::move(axes);
  target.reduce_kind = std::move(reduce_kind);
  left_open_by_[v] = {op_, where_};
}

Instruction& ProgramBuilder::emit_sum(InstructionKind kind, int partial, int result) {
  auto& instruction = emit(kind, {partial}, {result});
  const auto& from = value(partial);
  instruction.axes = from.partial_axes;
  instruction.reduce_kind = from.reduce_kind;
  if (const auto found = left_open_by_.find(partial); found != left_open_by_.end())
    std::tie(instruction.op, instruction.where) = found->second;
  return instruction;
}

int ProgramBuilder::combine(int v) {
  if (value(v).partial_axes.empty()) return v;
  for (const int member : family_[family_of_[v]])
    if (value(member).partial_axes.empty() && has_layout(value(member), value(v).layout)) return member;
  const auto from = value(v);
  const int result = add_value(from.type, from.layout, from.region);
  auto& instruction = emit_sum(InstructionKind::all_reduce, v, result);
  const std::int64_t p = axes_product(from.layout.mesh(), from.partial_axes);
  const auto block = from.layout.shard_shape(from.type.shape).elements() *
                     static_cast<std::int64_t>(itemsize(from.type.dtype));
  instruction.bytes = 2 * (p - 1) * block / p;
  join_family(v, result);
  return result;
}

// x partial over axis a, wanted split over a on one dim: each rank combines only the block that it keeps.
int ProgramBuilder::reduce_scatter(int v, const Sharding& to) {
  const auto from = value(v);
  if (!(from.layout.mesh() == to.mesh())) return -1;
  const int ndim = static_cast<int>(from.type.shape.size());
  const auto have = from.layout.dim_axes(ndim), want = to.dim_axes(ndim);
  for (int d = 0; d < ndim; ++d) {
    auto extended = have;
    auto& dim = extended[d];
    dim.insert(dim.end(), from.partial_axes.begin(), from.partial_axes.end());
    if (extended != want) continue;
    const auto parts = axes_product(to.mesh(), dim), coarse = axes_product(to.mesh(), have[d]);
    const auto n = from.type.shape[d];
    // The fine blocks of one group must tile the group's coarse block.
    if (coarse > 1 && block_size(n, parts) * (parts / coarse) != block_size(n, coarse)) continue;
    const int result = add_value(from.type, to, from.region);
    auto& instruction = emit_sum(InstructionKind::reduce_scatter, v, result);
    instruction.dim = d;
    const std::int64_t p = parts / coarse;
    const auto fine =
        to.shard_shape(from.type.shape).elements() * static_cast<std::int64_t>(itemsize(from.type.dtype));
    instruction.bytes = (p - 1) * fine;
    join_family(v, result);
    return result;
  }
  return -1;
}

int ProgramBuilder::move_step(int v, const ReshardStep& step) {
  const auto from = value(v);
  const int result = add_value(from.type, step.to, from.region);
  auto& instruction = emit(InstructionKind::move, {v}, {result});
  instruction.step = step;
  instruction.axes = step.axes;
  instruction.bytes = step.bytes;
  join_family(v, result);
  return result;
}

// Without partial terms.
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
  const auto plan = plan_reshard(from.layout, to, from.type.shape, from.type.dtype, fixed_axes_of(from));
  for (const auto& step : plan.steps) result = move_step(result, step);
  if (!has_layout(value(result), to)) {  // the same blocks under other axis names
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
        free ? 0 : plan_reshard(from.layout, to, from.type.shape, from.type.dtype, fixed_axes_of(from)).bytes;
    if (best < 0 || bytes < least) best = member, least = bytes;
  }
  if (best >= 0) return move_from(best, to);
  const int scattered = reduce_scatter(v, to);
  return scattered >= 0 ? scattered : reshard(combine(v), to);
}

}  // namespace tessera
