// Constant arrays that only elementwise ops read: the zeros in a gradient's mask, the ones in a user's
// formula.
//
//   before:  z = full f32[2048,2048] 0      y = where(m, g, z)
//   after:   z = full f32[] 0               y = where(m, g, z)        16 MiB less to write and to read
#include <map>

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

}  // namespace

Program shrink_constants(Program program) {
  return Shrinking(on_parts(std::move(program), shrink_constants)).run();
}

}  // namespace tessera
