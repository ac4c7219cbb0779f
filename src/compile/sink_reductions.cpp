// Combines sums that a loop only adds to over the ranks once, after the loop, instead of in every step:
//
//   before   loop:  r = all-reduce(t)   c' = c + r
//   after    loop, from zero:  c' = c + t;   after the loop  s = all-reduce(c)   result = first c + s
//
// The gradient of a weight that all steps share is such a sum: one message instead of one per step.
#include <algorithm>
#include <optional>

#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {
namespace {

std::size_t at(int v) { return static_cast<std::size_t>(v); }

// The producer of each value of a part, and the number of its readers.
struct Uses {
  std::vector<int> producer,
      readers;  // instruction, -1: none; number of reads, including as a result of the part
  explicit Uses(const Program& part) : producer(part.values.size(), -1), readers(part.values.size()) {
    for (std::size_t n = 0; n < part.instructions.size(); ++n) {
      for (const int v : part.instructions[n].outputs) producer[at(v)] = static_cast<int>(n);
      for (const int v : part.instructions[n].inputs) ++readers[at(v)];
    }
    for (const int v : part.outputs) ++readers[at(v)];
  }
};

struct Sum {
  int add = -1, reduction = -1;  // instructions of the part
  int term = -1;                 // index of the addition's input that is reduced
};

// Recognizes carried value k as such a sum; nullopt if it is not.
std::optional<Sum> sum_of(const Program& part, const Uses& uses, std::size_t k) {
  const int carried = part.inputs[k], result = part.outputs[k];
  Sum sum{uses.producer[at(result)], -1, -1};
  if (sum.add < 0 || uses.readers[at(carried)] != 1 || uses.readers[at(result)] != 1) return std::nullopt;
  const auto& add = part.instructions[at(sum.add)];
  if (!add.is<KernelCall>() || !computes(*add.op, kernels::map<"add">)) return std::nullopt;
  if (add.inputs[0] != carried && add.inputs[1] != carried) return std::nullopt;
  sum.term = add.inputs[0] == carried ? 1 : 0;
  const int reduced = add.inputs[at(sum.term)];
  sum.reduction = uses.producer[at(reduced)];
  if (sum.reduction < 0 || uses.readers[at(reduced)] != 1) return std::nullopt;
  const auto& reduction = part.instructions[at(sum.reduction)];
  const auto &a = part.values[at(carried)], &b = part.values[at(reduced)];
  const auto* all_reduce = reduction.as<AllReduce>();
  const bool fits = all_reduce != nullptr && all_reduce->kind == ReduceKind::sum &&
                    reduction.inputs.size() == 1 && a.type.shape == b.type.shape &&
                    a.type.dtype == b.type.dtype && a.layout == b.layout;
  return fits ? std::optional(sum) : std::nullopt;
}

bool is_zero(const Program& program, int v) {
  for (const auto& i : program.instructions)
    if (std::find(i.outputs.begin(), i.outputs.end(), v) != i.outputs.end()) {
      const auto* kernel = i.as<KernelCall>();
      return kernel != nullptr && fills_with_zero(*i.op, *kernel->params);
    }
  return false;
}

class Sinking {
 public:
  explicit Sinking(Program program) : out_(std::move(program)) {}

  Program run() {
    std::vector<Instruction> instructions;
    std::swap(instructions, out_.instructions);
    for (auto& instruction : instructions) {
      const auto* control = instruction.control();
      if (control != nullptr && control->as<CountedLoop>() != nullptr)
        sink_from(std::move(instruction));
      else
        out_.instructions.push_back(std::move(instruction));
    }
    return std::move(out_);
  }

 private:
  int like(int v) {
    out_.values.push_back(out_.values[at(v)]);
    return static_cast<int>(out_.values.size()) - 1;
  }

  void sink_from(Instruction loop) {
    Control inside = *loop.control();
    CountedLoop& counted = *inside.as<CountedLoop>();
    Program& part = inside.parts[0];
    const Uses uses(part);
    std::vector<Instruction> behind;
    std::vector<bool> stays(part.instructions.size(), true);
    for (std::size_t k = 0; k < at(counted.carried); ++k) {
      const auto sum = sum_of(part, uses, k);
      if (!sum) continue;
      auto& add = part.instructions[at(sum->add)];
      Instruction reduction = part.instructions[at(sum->reduction)];
      stays[at(sum->reduction)] = false;
      add.inputs[at(sum->term)] = reduction.inputs[0];
      counted.from_zero.resize(at(counted.carried));
      counted.from_zero[k] = true;
      const int result = loop.outputs[k], first = loop.inputs[k];
      const bool adds = !is_zero(out_, first);
      Instruction sum_behind = add;
      loop.outputs[k] = like(result);
      reduction.inputs = {loop.outputs[k]};
      reduction.outputs = {adds ? like(result) : result};
      sum_behind.inputs = {first, reduction.outputs[0]};
      sum_behind.outputs = {result};
      behind.push_back(std::move(reduction));
      if (adds) behind.push_back(std::move(sum_behind));
    }
    std::size_t n = 0;
    std::erase_if(part.instructions, [&](const Instruction&) { return !stays[n++]; });
    loop.set_control(std::move(inside));
    out_.instructions.push_back(std::move(loop));
    for (auto& i : behind) out_.instructions.push_back(std::move(i));
  }

  Program out_;
};

}  // namespace

Program sink_reductions(Program program) {
  return Sinking(on_parts(std::move(program), sink_reductions)).run();
}

}  // namespace tessera
