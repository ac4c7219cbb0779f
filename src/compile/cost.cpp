#include "compile/cost.hpp"

#include <algorithm>

#include "program/workspace.hpp"

namespace tessera {
namespace {

std::vector<Type> block_types(const Program& program, const std::vector<int>& values) {
  std::vector<Type> types;
  for (const int v : values) {
    const auto& value = program.values[v];
    types.push_back({value.layout.shard_shape(value.type.shape), value.type.dtype});
  }
  return types;
}

double flops_of_op(const Program& program, const Instruction& i, const Params& params) {
  const auto in = block_types(program, i.inputs), out = block_types(program, i.outputs);
  if (i.op->flops != nullptr) return i.op->flops(in, out, params);
  double elements = 0;
  for (const auto& t : in) elements += static_cast<double>(t.shape.elements());
  for (const auto& t : out) elements = std::max(elements, static_cast<double>(t.shape.elements()));
  return elements;
}

// A communicating kernel divides its total work among the ranks. The local part of one block says little
// about an LU, because its work is scattered block-cyclically.
double flops_of_joint(const Program& program, const Instruction& i, const Params& params) {
  const double own = flops_of_op(program, i, params);
  if (i.op->flops == nullptr) return own;
  const auto whole = [&](const std::vector<int>& values) {
    std::vector<Type> types;
    for (const int v : values) types.push_back(program.values[v].type);
    return types;
  };
  return std::max(own, i.op->flops(whole(i.inputs), whole(i.outputs), params) / mesh_of(program, i).size());
}

double flops_of_chain(const Program& program, const Instruction& i, const FusedChain& chain) {
  const auto& result = program.values[chain.reduction ? chain.reduction->value : i.outputs[0]];
  const auto ops = chain.steps.size() + (chain.reduction ? 1 : 0);
  return static_cast<double>(ops) *
         static_cast<double>(result.layout.shard_shape(result.type.shape).elements());
}

}  // namespace

double flops_of(const Program& program, const Instruction& i) {
  return std::visit(
      overloaded{[&](const KernelCall& k) { return flops_of_op(program, i, *k.params); },
                 [&](const CommunicatingCall& t) { return flops_of_joint(program, i, *t.params); },
                 [&](const FusedChain& chain) { return flops_of_chain(program, i, chain); },
                 [](const auto&) { return 0.0; }},
      i.what);
}

std::int64_t accessed_bytes(const Program& program, const Instruction& i) {
  if (i.is<Bitcast>()) return 0;
  if (const auto* remap = i.as<RemapMove>(); remap != nullptr && remap->leaves_own) return 2 * i.bytes;
  const auto* chain = i.as<FusedChain>();
  const auto operands = i.inputs.size() - (chain != nullptr ? chain->sources : 0);
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < operands; ++k) bytes += block_bytes(program.values[i.inputs[k]]);
  for (const int v : i.outputs) bytes += block_bytes(program.values[v]);
  return bytes;
}

namespace {

void add_cost(CostAnalysis& sum, const CostAnalysis& other, std::int64_t times) {
  sum.flops += other.flops * static_cast<double>(times);
  sum.bytes_accessed += other.bytes_accessed * times;
  sum.communication_bytes += other.communication_bytes * times;
  sum.communication_calls += other.communication_calls * times;
  sum.host_crossing_bytes += other.host_crossing_bytes * times;
}

// A loop costs its body times its count; a loop with a condition counts as one step; a branch costs its most
// expensive part.
CostAnalysis cost_of_control(const Control& control) {
  CostAnalysis cost;
  for (const auto& part : control.parts) {
    const auto own = cost_of(part);
    if (control.loop() != nullptr) {
      add_cost(cost, own, control.steps());
      continue;
    }
    cost.flops = std::max(cost.flops, own.flops);
    cost.bytes_accessed = std::max(cost.bytes_accessed, own.bytes_accessed);
    cost.communication_bytes = std::max(cost.communication_bytes, own.communication_bytes);
    cost.communication_calls = std::max(cost.communication_calls, own.communication_calls);
    cost.host_crossing_bytes = std::max(cost.host_crossing_bytes, own.host_crossing_bytes);
  }
  return cost;
}

CostAnalysis cost_of(const Program& program, const Instruction& i) {
  CostAnalysis cost;
  if (const auto* control = i.control()) {
    cost = cost_of_control(*control);
  } else {
    cost.flops = flops_of(program, i);
    cost.bytes_accessed = accessed_bytes(program, i);
  }
  for (const auto& t : traffic_of(i))
    cost.communication_bytes += t.bytes, cost.communication_calls += t.calls,
        cost.host_crossing_bytes += crossing_bytes(program, i, t);
  return cost;
}

}  // namespace

CostAnalysis cost_of(const Program& program) {
  CostAnalysis cost;
  for (const auto& i : program.instructions) add_cost(cost, cost_of(program, i), 1);
  return cost;
}

namespace {

// The rate of a transform's flops beside that of a product in float64. In float32 and float64 they ran at 1/2
// of it where they fit a cache of 1 MB, at 1/4 to 1/9 where they did not (an EPYC, one core).
constexpr double rate_of_transforms = 0.25;

// A collective's own time includes what it copies and adds.
bool is_collective(const Instruction& i) {
  const auto* move = i.as<Move>();
  return i.is<AllReduce>() || i.is<ReduceScatter>() ||
         (move != nullptr && move->step.kind == StepKind::all_gather);
}

}  // namespace

double arithmetic_seconds(const Program& program, const Instruction& i, const Rates& machine) {
  if (i.op != nullptr && i.op->name.starts_with("fft"))
    return flops_of(program, i) / (rate_of_transforms * machine.flops_per_s);
  const bool is_single = !i.outputs.empty() && real_dtype(program.values[i.outputs[0]].type.dtype) == float32;
  return flops_of(program, i) / machine.flops_per_s_of(is_single);
}
double local_seconds(const Program& program, const Instruction& i, const Rates& machine) {
  if (is_collective(i)) return 0;
  return arithmetic_seconds(program, i, machine) +
         machine.memory_seconds(static_cast<double>(accessed_bytes(program, i)));
}

double local_seconds(const Program& program, const Rates& machine) {
  double seconds = 0;
  for (const auto& i : program.instructions) {
    const auto* control = i.control();
    if (control == nullptr) {
      seconds += local_seconds(program, i, machine);
      continue;
    }
    double parts = 0;
    for (const auto& part : control->parts) {
      const double own = local_seconds(part, machine);
      parts = control->loop() != nullptr ? parts + own * static_cast<double>(control->steps())
                                         : std::max(parts, own);
    }
    seconds += parts;
  }
  return seconds;
}

namespace {

std::int64_t peak_inside(const Program& program, const Instruction& i) {
  std::int64_t peak = 0;
  if (const auto* communicating = i.as<CommunicatingCall>()) return communicating->temporary_bytes;
  if (const auto* kernel = i.as<KernelCall>()) {
    const auto workspace = workspace_of(*i.op);
    return workspace == nullptr
               ? 0
               : workspace(block_types(program, i.inputs), block_types(program, i.outputs), *kernel->params);
  }
  if (const auto* control = i.control())
    for (const auto& part : control->parts) {
      const auto memory = memory_of(part);
      peak = std::max(peak, memory.peak_bytes - memory.argument_bytes);
    }
  if (const auto* loop = i.control() != nullptr ? i.control()->as<CountedLoop>() : nullptr)
    for (const auto& walk : loop->walks) peak += walk.block_bytes;
  return peak;
}

// The values that share memory, and the last use of that memory.
struct Lifetimes {
  std::vector<int> buffer;            // value -> the value that owns its memory: aliases share one
  std::vector<std::size_t> last_use;  // per buffer: an instruction; past the last one for results
  std::vector<bool> is_input, is_output, is_stored;

  explicit Lifetimes(const Program& program)
      : buffer(program.values.size()),
        last_use(program.values.size()),
        is_input(program.values.size()),
        is_output(program.values.size()),
        is_stored(program.values.size(), true) {
    for (std::size_t v = 0; v < buffer.size(); ++v) buffer[v] = static_cast<int>(v);
    for (std::size_t n = 0; n < program.instructions.size(); ++n) {
      const auto& i = program.instructions[n];
      if (i.is<Bitcast>()) buffer[i.outputs[0]] = buffer[i.inputs[0]];
      if (!tessera::is_stored(i)) is_stored[i.outputs[0]] = false;
      for (const auto* list : {&i.inputs, &i.outputs})
        for (const int v : *list) last_use[buffer[v]] = n;
    }
    for (const int v : program.inputs) is_input[v] = true;
    for (const int v : program.outputs) {
      is_output[buffer[v]] = true;
      last_use[buffer[v]] = program.instructions.size();
    }
  }
};

// A sum over the ranks overwrites its terms if no other instruction reads them.
bool runs_in_place(const Instruction& i, std::size_t n, const Lifetimes& lives) {
  if (!i.is<AllReduce>() || i.inputs.size() != 1) return false;
  const int b = lives.buffer[i.inputs[0]];
  return lives.last_use[b] == n && !lives.is_input[b];
}

// The peak of live bytes, without the inputs.
std::int64_t peak_of(const Program& program, Lifetimes lives) {
  const auto never = program.instructions.size() + 1;
  std::int64_t live = 0, peak = 0;
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    const auto& i = program.instructions[n];
    std::int64_t made = 0;
    for (const int v : i.outputs)
      if (lives.buffer[v] == v && lives.is_stored[v]) made += block_bytes(program.values[v]);
    live += made;
    peak = std::max(peak, live + peak_inside(program, i) - (runs_in_place(i, n, lives) ? made : 0));
    for (const auto* list : {&i.inputs, &i.outputs})
      for (const int v : *list) {
        const int b = lives.buffer[v];
        if (lives.last_use[b] != n || lives.is_input[b] || !lives.is_stored[b]) continue;
        live -= block_bytes(program.values[b]);
        lives.last_use[b] = never;  // a shared buffer is freed only once
      }
  }
  return peak;
}

}  // namespace

MemoryAnalysis memory_of(const Program& program) {
  const Lifetimes lives(program);
  MemoryAnalysis memory;
  for (const int v : program.inputs) memory.argument_bytes += block_bytes(program.values[v]);
  for (std::size_t b = 0; b < program.values.size(); ++b)
    if (lives.is_output[b] && !lives.is_input[b]) memory.output_bytes += block_bytes(program.values[b]);
  const auto peak = peak_of(program, lives);
  memory.peak_bytes = memory.argument_bytes + std::max(peak, memory.output_bytes);
  memory.temporary_bytes = std::max<std::int64_t>(0, peak - memory.output_bytes);
  return memory;
}

}  // namespace tessera
