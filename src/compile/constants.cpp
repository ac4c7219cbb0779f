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

}  // namespace

Program unite_equal_scalars(Program program, const std::vector<Array>& leaves) {
  std::map<ScalarBits, int> first;
  std::map<int, int> equal;  // value -> the first one with these bits
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (const auto bits = scalar_bits(leaves[i])) {
      const auto [known, is_new] = first.try_emplace(*bits, program.inputs[i]);
      if (!is_new) equal[program.inputs[i]] = known->second;
    }
  for (auto& instruction : program.instructions)
    for (int& v : instruction.inputs)
      if (const auto found = equal.find(v); found != equal.end()) v = found->second;
  return program;
}

Program shrink_constants(Program program) {
  return Shrinking(on_parts(std::move(program), shrink_constants)).run();
}

}  // namespace tessera
