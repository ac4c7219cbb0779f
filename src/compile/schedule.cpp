// The order in which a rank runs its program.
//
//   before:  c = dot(a, b)   r = all-reduce(p)   s = all-reduce(q)   d = c + 1   y = r + s
//   after:   start r, s = all-reduce(p, q), one message   c = dot(a, b)   d = c + 1   finish   y = r + s
//
// Instructions move only upwards, past instructions that they do not depend on, by rules that depend on the
// program alone: every rank gets the same order.
#include <algorithm>

#include "compile/passes.hpp"

namespace tessera {
namespace {

constexpr std::int64_t small_message_bytes = 256 << 10;

bool may_start_early(const Instruction& i) {
  const auto* move = i.as<Move>();
  return i.is<AllReduce>() || (move != nullptr && move->step.kind == StepKind::all_gather);
}

std::int64_t result_bytes(const Program& program, const Instruction& i) {
  std::int64_t bytes = 0;
  for (const int v : i.outputs) bytes += block_bytes(program.values[v]);
  return bytes;
}

std::int64_t all_reduce_bytes(const Program& program, const Instruction& i) {
  const auto p = devices_along(mesh_of(program, i), i.as<AllReduce>()->axes);
  return 2 * (p - 1) * result_bytes(program, i) / p;
}

// Whether two reductions can share one message.
bool can_join(const Program& program, const Instruction& first, const Instruction& second) {
  const auto &a = *first.as<AllReduce>(), &b = *second.as<AllReduce>();
  const auto &va = program.values[first.outputs[0]], &vb = program.values[second.outputs[0]];
  return a.axes == b.axes && a.kind == b.kind && va.type.dtype == vb.type.dtype &&
         va.layout.mesh() == vb.layout.mesh() && va.region == vb.region &&
         result_bytes(program, first) + result_bytes(program, second) <= small_message_bytes;
}

bool reads_any(const Instruction& i, const std::vector<int>& values) {
  return std::any_of(i.inputs.begin(), i.inputs.end(),
                     [&](int v) { return std::find(values.begin(), values.end(), v) != values.end(); });
}

// Delays small reductions until the result of one is read, so that several share one message.
Program join_small_reductions(Program out) {
  std::vector<Instruction> given, waiting;
  std::swap(given, out.instructions);
  for (auto& instruction : given) {
    for (std::size_t w = 0; w < waiting.size();) {
      if (reads_any(instruction, waiting[w].outputs)) {
        out.instructions.push_back(std::move(waiting[w]));
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(w));
      } else {
        ++w;
      }
    }
    if (!instruction.is<AllReduce>() || result_bytes(out, instruction) > small_message_bytes) {
      out.instructions.push_back(std::move(instruction));
      continue;
    }
    const auto other = std::find_if(waiting.begin(), waiting.end(),
                                    [&](const Instruction& w) { return can_join(out, w, instruction); });
    if (other == waiting.end()) {
      waiting.push_back(std::move(instruction));
      continue;
    }
    other->inputs.push_back(instruction.inputs[0]);
    other->outputs.push_back(instruction.outputs[0]);
    other->bytes = all_reduce_bytes(out, *other);
  }
  for (auto& rest : waiting) out.instructions.push_back(std::move(rest));
  return out;
}

// Moves every collective directly behind the instruction that completes its input, in the original order.
Program start_early(Program out) {
  std::vector<Instruction> given;
  std::swap(given, out.instructions);
  std::vector<std::size_t> defined_at(out.values.size(), 0);  // index after the definition; 0 for inputs
  for (auto& instruction : given) {
    std::size_t at = out.instructions.size();
    if (may_start_early(instruction)) {
      at = 0;
      for (const int v : instruction.inputs) at = std::max(at, defined_at[v]);
      while (at < out.instructions.size() && may_start_early(out.instructions[at])) ++at;
      for (auto& position : defined_at)
        if (position > at) ++position;
    }
    for (const int v : instruction.outputs) defined_at[v] = at + 1;
    out.instructions.insert(out.instructions.begin() + static_cast<std::ptrdiff_t>(at),
                            std::move(instruction));
  }
  return out;
}

}  // namespace

Program schedule(Program program) {
  return start_early(join_small_reductions(on_parts(std::move(program), schedule)));
}

}  // namespace tessera
