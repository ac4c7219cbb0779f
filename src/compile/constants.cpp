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
  explicit Shrinking(const Program& program) : given_(program), out_(program) { out_.instructions.clear(); }

  Program run() {
    for (const auto& instruction : given_.instructions) {
      if (one_element(given_, instruction) != nullptr) constants_[instruction.outputs[0]] = &instruction;
      Instruction reader = instruction;
      if (reads_elements(instruction))
        for (int& v : reader.inputs)
          if (constants_.contains(v)) v = element_of(v);
      out_.instructions.push_back(std::move(reader));
    }
    return std::move(out_);
  }

 private:
  int element_of(int constant) {
    const auto [element, is_new] = elements_.try_emplace(constant, static_cast<int>(out_.values.size()));
    if (!is_new) return element->second;
    Instruction made = *constants_.at(constant);
    made.what = KernelCall{one_element(given_, made)};
    made.outputs = {element->second};
    ProgramValue value = given_.values[constant];
    value.type.shape = Shape{};
    value.layout = Sharding::replicated(value.layout.mesh());
    out_.values.push_back(std::move(value));
    out_.instructions.push_back(std::move(made));
    return element->second;
  }

  const Program& given_;
  Program out_;
  std::map<int, const Instruction*> constants_;  // value -> the instruction that creates it
  std::map<int, int> elements_;                  // constant -> its one element
};

}  // namespace

Program shrink_constants(const Program& program) {
  const Program inside = on_parts(program, shrink_constants);
  return Shrinking(inside).run();
}

}  // namespace tessera
