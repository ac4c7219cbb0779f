#include "program/program.hpp"

#include <algorithm>

namespace tessera {

void Instruction::set_control(Control inside) {
  what = ControlFlow{std::make_shared<const Control>(std::move(inside))};
}

const Epilogue* Instruction::epilogue() const {
  if (const auto* kernel = as<KernelCall>()) return kernel->epilogue.get();
  if (const auto* communicating = as<CommunicatingCall>()) return communicating->epilogue.get();
  return nullptr;
}

Loop* Control::loop() {
  return std::visit(overloaded{[](Branch&) -> Loop* { return nullptr; }, [](Loop& loop) { return &loop; }},
                    kind);
}
const Loop* Control::loop() const { return const_cast<Control*>(this)->loop(); }
std::int64_t Control::steps() const {
  const auto* counted = as<CountedLoop>();
  return counted == nullptr ? 1 : counted->length;
}

std::int64_t block_bytes(const ProgramValue& value) {
  return value.layout.shard_shape(value.type.shape).elements() *
         static_cast<std::int64_t>(itemsize(value.type.dtype));
}
bool is_stored(const Instruction& i) {
  const auto* remap = i.as<RemapMove>();
  return remap == nullptr || !remap->leaves_own || i.bytes > 0;
}

bool same_layout(const Sharding& a, const Sharding& b, int ndim) {
  return a.mesh() == b.mesh() && a.dim_axes(ndim) == b.dim_axes(ndim);
}

namespace {

bool is_walked(const Walk& walk) { return !walk.broadcast.axes.empty(); }
// The index of a loop's first stack that is split along the steps; past the last one if there is none.
std::size_t first_walked(const CountedLoop& loop) {
  return static_cast<std::size_t>(std::find_if(loop.walks.begin(), loop.walks.end(), is_walked) -
                                  loop.walks.begin());
}
const CountedLoop* counted_loop(const Instruction& i) {
  const auto* control = i.control();
  return control == nullptr ? nullptr : control->as<CountedLoop>();
}

}  // namespace

Mesh mesh_of(const Program& program, const Instruction& i) {
  if (const auto* move = i.as<Move>()) return move->step.from.mesh();
  if (const auto* loop = counted_loop(i))  // all stacks split along the steps are on one mesh
    if (const auto n = first_walked(*loop); n < loop->walks.size())
      return program.values[i.inputs[static_cast<std::size_t>(loop->carried) + n]].layout.mesh();
  return program.values[i.outputs.empty() ? i.inputs[0] : i.outputs[0]].layout.mesh();
}

namespace {

const MeshAxes& axes_of(const Instruction& i) {
  return std::visit(overloaded{[](const Move& m) -> const MeshAxes& { return m.step.axes; },
                               [](const AllReduce& r) -> const MeshAxes& { return r.axes; },
                               [](const ReduceScatter& r) -> const MeshAxes& { return r.axes; },
                               [](const auto&) -> const MeshAxes& { return no_axes; }},
                    i.what);
}

}  // namespace

std::string collective_kind(const Instruction& i) {
  return std::visit(
      overloaded{
          [](const Move& m) -> std::string { return step_name(m.step.kind); },
          [](const AllReduce&) -> std::string { return "all-reduce"; },
          [](const ReduceScatter&) -> std::string { return "reduce-scatter"; },
          [&](const RemapMove&) -> std::string { return i.bytes > 0 ? "collective-permute" : ""; },
          [](const CommunicatingCall& t) { return t.costs.empty() ? std::string() : t.costs.front().kind; },
          [](const auto&) { return std::string(); }},
      i.what);
}

std::vector<CommunicationCost> traffic_of(const Instruction& i) {
  if (const auto* communicating = i.as<CommunicatingCall>()) return communicating->costs;
  if (const auto* loop = counted_loop(i)) {
    std::vector<CommunicationCost> costs;
    for (const auto& walk : loop->walks)
      if (is_walked(walk)) costs.push_back(walk.broadcast);
    return costs;
  }
  const auto kind = collective_kind(i);
  if (kind.empty() || kind == "all-slice") return {};
  return {{kind, axes_of(i), i.bytes, 1}};
}

namespace {

[[noreturn]] void fail(const Program& program, const Instruction& i, const std::string& what) {
  throw InternalError("program: " + (i.op ? i.op->name : std::string("instruction")) + " " + what + "\n" +
                      program_text(program));
}

void verify(const Program& program, const Instruction& i, std::vector<bool>& defined) {
  if (const auto* control = i.control())
    for (const auto& part : control->parts) verify(part);
  for (const int v : i.inputs)
    if (!defined[v]) fail(program, i, "reads %" + std::to_string(v) + " before it is defined");
  for (const int v : i.outputs) {
    if (defined[v]) fail(program, i, "defines %" + std::to_string(v) + " twice");
    defined[v] = true;
    const auto& value = program.values[v];
    value.layout.check_fits(value.type.shape, "program");
  }
}

}  // namespace

void verify(const Program& program) {
  std::vector<bool> defined(program.values.size());
  for (const int v : program.inputs) defined[v] = true;
  for (const auto& i : program.instructions) verify(program, i, defined);
  for (const int v : program.outputs) {
    if (!defined[v]) throw InternalError("program: the output %" + std::to_string(v) + " is not defined");
    if (!program.values[v].partial_axes.empty())
      throw InternalError("program: the output %" + std::to_string(v) + " is not reduced");
  }
}

}  // namespace tessera
