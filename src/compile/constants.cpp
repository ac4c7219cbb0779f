// Constant arrays that only elementwise ops read: zeros of a gradient's mask, ones of a user's formula.
//
//   before:  z = full f32[2048,2048] 0      y = where(m, g, z)
//   after:   z = full f32[] 0               y = where(m, g, z)        16 MiB less to write and to read
#include <map>

#include "compile/passes.hpp"
#include "graph/elementwise_row.hpp"
#include "ops/create/scalar.hpp"

namespace tessera {

Program shrink_constants(const Program& given) {
  const Program program = on_parts(given, shrink_constants);
  Program out = program;
  out.instructions.clear();
  std::map<int, std::size_t> constants;  // value -> instruction that makes it
  std::map<int, int> element_of;         // constant -> its one element
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    Instruction instruction = program.instructions[n];
    if (instruction.kind == InstructionKind::kernel && instruction.inputs.empty() &&
        instruction.outputs.size() == 1 && program.values[instruction.outputs[0]].type.shape.ndim() > 0 &&
        params_of_one_element(*instruction.op, *instruction.params) != nullptr)
      constants[instruction.outputs[0]] = n;
    const bool reads_elements =
        instruction.kind == InstructionKind::kernel && is_elementwise(*instruction.op);
    for (std::size_t i = 0; reads_elements && i < instruction.inputs.size(); ++i) {
      int& v = instruction.inputs[i];
      const auto constant = constants.find(v);
      if (constant == constants.end()) continue;
      const auto [element, is_new] = element_of.try_emplace(v, static_cast<int>(out.values.size()));
      if (is_new) {
        Instruction made = program.instructions[constant->second];
        ProgramValue value = program.values[v];
        made.params = params_of_one_element(*made.op, *made.params);
        made.outputs = {element->second};
        value.type.shape = Shape{};
        value.layout = Sharding::replicated(value.layout.mesh());
        out.values.push_back(std::move(value));
        out.instructions.push_back(std::move(made));
      }
      v = element->second;
    }
    out.instructions.push_back(std::move(instruction));
  }
  return out;
}

}  // namespace tessera
