// Constant arrays that only elementwise ops read: the zeros in a gradient's mask, the ones in a user's
// formula.
//
//   before:  z = full f32[2048,2048] 0      y = where(m, g, z)
//   after:   z = full f32[] 0               y = where(m, g, z)        16 MiB less to write and to read
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "compile/graph.hpp"
#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {
namespace {

// The params for one element of the constant array that this instruction creates; nullptr if it creates none.
ParamsPtr one_element(const Program& program, const Instruction& i) {
  const auto* kernel = i.as<KernelCall>();
  if (kernel == nullptr || !i.inputs.empty() || i.outputs.size() != 1 ||
      program.values[i.outputs[0]].type.shape.ndim() == 0)
    return nullptr;
  return params_of_one_element(*i.op, *kernel->params);
}

bool reads_elements(const Instruction& i) { return i.is<KernelCall>() && is_elementwise(*i.op); }

class Shrinking {
 public:
  explicit Shrinking(Program program) : out_(std::move(program)) {}

  Program run() {
    std::vector<Instruction> given;
    std::swap(given, out_.instructions);
    for (auto& instruction : given) {
      if (one_element(out_, instruction) != nullptr) constants_[instruction.outputs[0]] = instruction;
      if (reads_elements(instruction))
        for (int& v : instruction.inputs)
          if (constants_.contains(v)) v = element_of(v);
      out_.instructions.push_back(std::move(instruction));
    }
    return std::move(out_);
  }

 private:
  int element_of(int constant) {
    const auto [element, is_new] = elements_.try_emplace(constant, static_cast<int>(out_.values.size()));
    if (!is_new) return element->second;
    Instruction made = constants_.at(constant);
    made.what = KernelCall{one_element(out_, made)};
    made.outputs = {element->second};
    ProgramValue value = out_.values[constant];
    value.type.shape = Shape{};
    value.layout = Sharding::replicated(value.layout.mesh());
    out_.values.push_back(std::move(value));
    out_.instructions.push_back(std::move(made));
    return element->second;
  }

  Program out_;
  std::map<int, Instruction> constants_;  // value -> the instruction that creates it
  std::map<int, int> elements_;           // constant -> its one element
};

// A scalar's dtype and bits; nullopt for other leaves.
using ScalarBits = std::tuple<int, std::uint64_t, std::uint64_t>;
std::optional<ScalarBits> scalar_bits(const Array& leaf) {
  const auto& output = output_of(leaf);
  if (!is_small_constant(output) || output.type.shape.ndim() > 0) return std::nullopt;
  std::uint64_t bits[2] = {};
  std::memcpy(bits, output.stored->buffer.data(), std::min(sizeof bits, output.stored->buffer.bytes()));
  return ScalarBits{output.type.dtype.code, bits[0], bits[1]};
}

template <class T> ScalarBits bits_of(Dtype dtype, T number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof number);
  return {dtype.code, bits, 0};
}
bool is_number(const ScalarBits& bits, double number) {
  return bits == bits_of(float32, static_cast<float>(number)) || bits == bits_of(float64, number);
}

// The operand that the op returns bit by bit beside a scalar: x of x - 0, x / 1, x * 1 and 1 * x; -1: none.
// The sum x + 0 is not among them, since it is 0 for -0.
int unchanged_operand(const Instruction& i, const std::map<int, ScalarBits>& scalars) {
  const auto is = [&](std::size_t operand, double number) {
    const auto found = scalars.find(i.inputs[operand]);
    return found != scalars.end() && is_number(found->second, number);
  };
  if (!reads_elements(i) || i.inputs.size() != 2) return -1;
  if (i.op->name == "subtract") return is(1, 0) ? 0 : -1;
  if (i.op->name == "divide") return is(1, 1) ? 0 : -1;
  if (i.op->name == "multiply") return is(1, 1) ? 0 : is(0, 1) ? 1 : -1;
  return -1;
}

bool is_same_value(const ProgramValue& a, const ProgramValue& b) {
  return a.type == b.type && a.layout == b.layout && a.partial_axes == b.partial_axes &&
         a.region == b.region && a.everywhere == b.everywhere;
}

// Reads x instead of x - 0, x / 1 and x * 1.
Program skip_identities(Program program, std::map<int, ScalarBits> scalars) {
  std::map<int, int> same;  // value -> the equal one that is read instead
  for (auto& instruction : program.instructions) {
    for (int& v : instruction.inputs)
      if (const auto found = same.find(v); found != same.end()) v = found->second;
    if (instruction.is<Bitcast>())
      if (const auto scalar = scalars.find(instruction.inputs[0]); scalar != scalars.end())
        scalars.emplace(instruction.outputs[0], scalar->second);
    const int operand = unchanged_operand(instruction, scalars);
    if (operand < 0) continue;
    const int x = instruction.inputs[static_cast<std::size_t>(operand)], result = instruction.outputs[0];
    if (is_same_value(program.values[x], program.values[result])) same[result] = x;
  }
  return program;
}

}  // namespace

Program simplify_scalars(Program program, const std::vector<Array>& leaves) {
  std::map<ScalarBits, int> first;
  std::map<int, int> equal;  // value -> the first one with these bits
  std::map<int, ScalarBits> scalars;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (const auto bits = scalar_bits(leaves[i])) {
      const auto [known, is_new] = first.try_emplace(*bits, program.inputs[i]);
      if (!is_new) equal[program.inputs[i]] = known->second;
      scalars.emplace(program.inputs[i], *bits);
    }
  for (auto& instruction : program.instructions)
    for (int& v : instruction.inputs)
      if (const auto found = equal.find(v); found != equal.end()) v = found->second;
  return skip_identities(std::move(program), std::move(scalars));
}

Program shrink_constants(Program program) {
  return Shrinking(on_parts(std::move(program), shrink_constants)).run();
}

}  // namespace tessera
