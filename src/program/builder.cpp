#include "program/builder.hpp"

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

int axes_product(const Mesh& mesh, const std::vector<int>& axes) {
  int product = 1;
  for (const int a : axes) product *= mesh.axis_sizes()[static_cast<std::size_t>(a)];
  return product;
}

const std::vector<int>& fixed_axes_of(const ProgramValue& value) {
  static const std::vector<int> none;
  return value.region ? value.region->manual_axes : none;
}

// Both hold everything on every device of theirs, and `to` asks for no device that `from` lacks: nothing needs to be done.
bool is_free(const Sharding& from, const Sharding& to, const Type& type) {
  if (!from.is_fully_replicated() && type.shape.elements() > 0) return false;
  if (!to.is_fully_replicated()) return false;
  for (const int id : to.mesh().device_ids())
    if (from.mesh().position(id) < 0) return false;
  return true;
}

}  // namespace

int ProgramBuilder::add_value(Type type, Sharding layout, RegionPtr region) {
  program_.values.push_back({std::move(type), std::move(layout), {}, "sum", std::move(region)});
  versions_.emplace_back();
  return static_cast<int>(program_.values.size()) - 1;
}

int ProgramBuilder::add_input(Type type, Sharding layout, RegionPtr region) {
  const int v = add_value(std::move(type), std::move(layout), std::move(region));
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

std::vector<int> ProgramBuilder::kernel(const OpDef& op, ParamsPtr params, std::vector<int> inputs, std::vector<Type> out, std::vector<Sharding> layouts) {
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

std::vector<int> ProgramBuilder::talk(const OpDef& op, ParamsPtr params, std::vector<int> inputs, std::vector<Type> out, std::vector<Sharding> layouts,
                                      std::vector<TalkCost> costs) {
  auto results = kernel(op, std::move(params), std::move(inputs), std::move(out), std::move(layouts));
  auto& instruction = program_.instructions.back();
  instruction.kind = InstructionKind::talk;
  for (const auto& cost : costs) instruction.bytes += cost.bytes;
  instruction.costs = std::move(costs);
  return results;
}

int ProgramBuilder::remap(Remap map, std::vector<int> inputs, Type out, Sharding layout, std::span<const std::byte> fill) {
  std::vector<Sharding> from;
  std::vector<Shape> shapes;
  RegionPtr region;
  for (const int v : inputs) {
    from.push_back(value(v).layout);
    shapes.push_back(value(v).type.shape);
    if (value(v).region) region = value(v).region;
  }
  static const std::vector<int> none;
  const auto bytes = exchange_bytes(map, from, shapes, layout, out.shape, itemsize(out.dtype), region ? region->manual_axes : none);
  const int result = add_value(std::move(out), std::move(layout), region);
  auto& instruction = emit(InstructionKind::remap, std::move(inputs), {result});
  instruction.remap = std::make_shared<const Remap>(std::move(map));
  instruction.bytes = bytes;
  instruction.fill.assign(fill.begin(), fill.end());
  return result;
}

void ProgramBuilder::set_partial(int v, std::vector<int> axes, std::string reduce_kind) {
  auto& target = program_.values[static_cast<std::size_t>(v)];
  target.partial_axes = std::move(axes);
  target.reduce_kind = std::move(reduce_kind);
}

int ProgramBuilder::combine(int v) {
  if (value(v).partial_axes.empty()) return v;
  for (const auto& [layout, at_hand] : versions_[static_cast<std::size_t>(v)])
    if (layout == value(v).layout) return at_hand;
  const auto from = value(v);
  const int result = add_value(from.type, from.layout, from.region);
  auto& instruction = emit(InstructionKind::all_reduce, {v}, {result});
  instruction.axes = from.partial_axes;
  instruction.reduce_kind = from.reduce_kind;
  const std::int64_t p = axes_product(from.layout.mesh(), from.partial_axes);
  const auto block = from.layout.shard_shape(from.type.shape).elements() * static_cast<std::int64_t>(itemsize(from.type.dtype));
  instruction.bytes = 2 * (p - 1) * block / p;
  versions_[static_cast<std::size_t>(v)].emplace_back(from.layout, result);
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
    auto& dim = extended[static_cast<std::size_t>(d)];
    dim.insert(dim.end(), from.partial_axes.begin(), from.partial_axes.end());
    if (extended != want) continue;
    const auto parts = axes_product(to.mesh(), dim), coarse = axes_product(to.mesh(), have[static_cast<std::size_t>(d)]);
    const auto n = from.type.shape[static_cast<std::size_t>(d)];
    // The fine blocks of one group must tile the group's coarse block.
    if (coarse > 1 && block_size(n, parts) * (parts / coarse) != block_size(n, coarse)) continue;
    const int result = add_value(from.type, to, from.region);
    auto& instruction = emit(InstructionKind::reduce_scatter, {v}, {result});
    instruction.axes = from.partial_axes;
    instruction.dim = d;
    instruction.reduce_kind = from.reduce_kind;
    const std::int64_t p = parts / coarse;
    const auto fine = to.shard_shape(from.type.shape).elements() * static_cast<std::int64_t>(itemsize(from.type.dtype));
    instruction.bytes = (p - 1) * fine;
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
  return result;
}

int ProgramBuilder::reshard(int v, const Sharding& to) {
  {
    const auto& from = value(v);
    const int ndim = static_cast<int>(from.type.shape.size());
    if (from.partial_axes.empty() && from.layout.mesh() == to.mesh() && from.layout.dim_axes(ndim) == to.dim_axes(ndim)) return v;
  }
  for (const auto& [layout, at_hand] : versions_[static_cast<std::size_t>(v)])
    if (layout == to && layout.mesh() == to.mesh()) return at_hand;
  int result = v;
  if (!value(v).partial_axes.empty()) {
    const int scattered = reduce_scatter(v, to);
    result = scattered >= 0 ? scattered : combine(v);
    if (scattered < 0 && result != v) result = reshard(result, to);
  } else if (is_free(value(v).layout, to, value(v).type)) {
    result = alias(v, value(v).type, to);
  } else {
    const auto from = value(v);
    const auto plan = plan_reshard(from.layout, to, from.type.shape, from.type.dtype, fixed_axes_of(from));
    for (const auto& step : plan.steps) result = move_step(result, step);
    if (!(value(result).layout.mesh() == to.mesh()) || !(value(result).layout.dim_axes(static_cast<int>(from.type.shape.size())) == to.dim_axes(static_cast<int>(from.type.shape.size()))))
      result = alias(result, from.type, to);  // the same blocks under other axis names
  }
  if (result != v) versions_[static_cast<std::size_t>(v)].emplace_back(to, result);
  return result;
}

}  // namespace tessera
