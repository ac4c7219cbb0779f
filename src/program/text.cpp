// Programs as text.
#include <sstream>

#include "program/program.hpp"

namespace tessera {

std::string short_text(const Type& type) {
  const auto text = to_string(type);
  return short_name(type.dtype) + text.substr(text.find('['));
}

std::string axes_text(const Mesh& mesh, const MeshAxes& axes) {
  std::string text;
  for (const int a : axes) text += (text.empty() ? "" : ",") + mesh.axis_names()[a];
  return text;
}

std::string chain_text(const FusedChain& chain) {
  std::string text;
  for (const auto& step : chain.steps) text += (text.empty() ? "" : "+") + step.op->name;
  if (chain.reduction) text += std::string("+") + name(chain.reduction->kind);
  return text;
}

namespace {

std::string value_text(const Program& program, int v) {
  const auto& value = program.values[v];
  return short_text({value.layout.shard_shape(value.type.shape), value.type.dtype});
}

// "%3, %4"
std::string numbers_text(const std::vector<int>& values) {
  std::string text;
  for (const int v : values) text += (text.empty() ? "%" : ", %") + std::to_string(v);
  return text;
}

std::string name_text(const Instruction& i) {
  const auto kind = collective_kind(i);
  return std::visit(overloaded{[](const FusedChain& chain) { return "fusion[" + chain_text(chain) + "]"; },
                               [](const Bitcast&) -> std::string { return "bitcast"; },
                               [&](const KernelCall&) { return i.op->name; },
                               [&](const CommunicatingCall&) { return i.op->name; },
                               [&](const ControlFlow&) { return i.op->name; },
                               [&](const RemapMove&) { return kind.empty() ? "remap" : kind; },
                               [&](const auto&) { return kind; }},
                    i.what);
}

std::string braced(const Params& params) {
  const auto text = params.text();
  return text.empty() ? "" : " {" + text + "}";
}

std::string numbered(const char* label, int dim) { return dim < 0 ? "" : label + std::to_string(dim); }

// Details that also affect the result: " dim=1".
std::string details_text(const Instruction& i) {
  return std::visit(overloaded{[](const KernelCall& k) { return braced(*k.params); },
                               [](const CommunicatingCall& t) { return braced(*t.params); },
                               [](const Move& m) {
                                 return numbered(" dim=", m.step.dim) +
                                        numbered(" split_dim=", m.step.split_dim);
                               },
                               [](const ReduceScatter& r) { return numbered(" dim=", r.dim); },
                               [](const RemapMove& r) -> std::string { return r.leaves_own ? " view" : ""; },
                               [](const auto&) { return std::string(); }},
                    i.what);
}

std::string traffic_text(const Program& program, const Instruction& i) {
  std::string text;
  for (const auto& cost : traffic_of(i)) {
    if (i.is<CommunicatingCall>() || i.is<ControlFlow>())
      text += " " + cost.kind + "×" + std::to_string(cost.calls);
    if (!cost.axes.empty()) text += " axes=" + axes_text(mesh_of(program, i), cost.axes);
    text += " bytes=" + std::to_string(cost.bytes);
  }
  return text;
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "    ";
  }
  return result;
}

std::string part_name(const Control& control, std::size_t part) {
  return std::visit(
      overloaded{[&](const Branch&) -> std::string { return part == 0 ? "where true" : "where false"; },
                 [](const CountedLoop& loop) { return "body, " + std::to_string(loop.length) + " times"; },
                 [&](const UntilLoop&) -> std::string { return part == 0 ? "while" : "body"; }},
      control.kind);
}

std::string parts_text(const Control& control) {
  std::string text;
  for (std::size_t p = 0; p < control.parts.size(); ++p)
    text += "  " + part_name(control, p) + ":\n" + indented(program_text(control.parts[p]));
  return text;
}

std::string instruction_text(const Program& program, const Instruction& i) {
  std::string text = numbers_text(i.outputs) + " =";
  for (const int v : i.outputs) text += " " + value_text(program, v);
  const auto* epilogue = i.epilogue();
  text += " " + name_text(i) + (epilogue != nullptr ? "+" + chain_text(epilogue->chain) : "") + "(" +
          numbers_text(i.inputs) + ")" + details_text(i) + traffic_text(program, i);
  const auto* control = i.control();
  if (const auto* loop = control ? control->as<CountedLoop>() : nullptr)
    text += " " + std::to_string(loop->length) + " times" + (loop->reverse ? ", last step first" : "");
  text += "  # " + (i.op ? i.op->name + " " : "") + site(i.where) + "\n";
  return control ? text + parts_text(*control) : text;
}

}  // namespace

std::string program_text(const Program& program) {
  std::ostringstream text;
  for (const int v : program.inputs) {
    const auto& value = program.values[v];
    text << "%" << v << " = " << value_text(program, v) << " parameter, global " << short_text(value.type)
         << " " << value.layout.spec() << "\n";
  }
  for (const auto& i : program.instructions) text << instruction_text(program, i);
  text << "return";
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const auto& value = program.values[program.outputs[i]];
    text << (i ? ", %" : " %") << program.outputs[i] << " " << value.layout.spec();
  }
  text << "\n";
  return text.str();
}

}  // namespace tessera
