// Programs as text, and their verifier.
#include <sstream>

#include "program/program.hpp"

namespace tessera {

std::string collective_kind(const Instruction& i) {
  switch (i.kind) {
    case InstructionKind::move: return step_name(i.step->kind);
    case InstructionKind::all_reduce: return "all-reduce";
    case InstructionKind::reduce_scatter: return "reduce-scatter";
    case InstructionKind::remap: return i.bytes > 0 ? "collective-permute" : "";
    case InstructionKind::talk: return i.costs.empty() ? "" : i.costs.front().kind;
    default: return "";
  }
}

std::vector<TalkCost> traffic_of(const Instruction& i) {
  if (i.kind == InstructionKind::talk) return i.costs;
  const auto kind = collective_kind(i);
  if (kind.empty() || kind == "all-slice") return {};
  return {{kind, i.axes, i.bytes, 1}};
}

namespace {

std::string axes_text(const Mesh& mesh, const std::vector<int>& axes) {
  std::string text;
  for (const int a : axes) text += (text.empty() ? "" : ",") + mesh.axis_names()[a];
  return text;
}

std::string value_text(const Program& program, int v) {
  const auto& value = program.values[v];
  return to_string(Type{value.layout.shard_shape(value.type.shape), value.type.dtype});
}

std::string chain_text(const Instruction& i) {
  std::string text;
  for (const auto& step : i.chain) text += (text.empty() ? "" : "+") + step.op->name;
  if (i.reduced_value >= 0) text += "+" + i.reduce_kind;
  return text;
}

}  // namespace

namespace {

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "    ";
  }
  return result;
}

std::string parts_text(const Control& control) {
  static const char* const of_branch[] = {"where true", "where false"};
  static const char* const of_until[] = {"while", "body"};
  std::string text;
  for (std::size_t p = 0; p < control.parts.size(); ++p) {
    const std::string name = control.kind == ControlKind::counted
                                 ? "body, " + std::to_string(control.length) + " times"
                             : control.kind == ControlKind::branch ? of_branch[p]
                                                                   : of_until[p];
    text += "  " + name + ":\n" + indented(program_text(control.parts[p]));
  }
  return text;
}

}  // namespace

std::string program_text(const Program& program) {
  std::ostringstream text;
  for (const int v : program.inputs) {
    const auto& value = program.values[v];
    text << "%" << v << " = " << value_text(program, v) << " parameter, global " << to_string(value.type)
         << " " << value.layout.spec() << "\n";
  }
  for (const auto& i : program.instructions) {
    for (std::size_t o = 0; o < i.outputs.size(); ++o) text << (o ? ", " : "") << "%" << i.outputs[o];
    text << " =";
    for (const int v : i.outputs) text << " " << value_text(program, v);
    text << " ";
    const auto kind = collective_kind(i);
    switch (i.kind) {
      case InstructionKind::fused: text << "fusion[" << chain_text(i) << "]"; break;
      case InstructionKind::alias: text << "bitcast"; break;
      case InstructionKind::kernel: text << i.op->name; break;
      case InstructionKind::control:
      case InstructionKind::talk: text << i.op->name; break;
      case InstructionKind::remap: text << (kind.empty() ? "remap" : kind); break;
      default: text << kind;
    }
    text << "(";
    for (std::size_t k = 0; k < i.inputs.size(); ++k) text << (k ? ", " : "") << "%" << i.inputs[k];
    text << ")";
    const auto& mesh = program.values[i.outputs.empty() ? i.inputs[0] : i.outputs[0]].layout.mesh();
    if (i.kind == InstructionKind::kernel || i.kind == InstructionKind::talk)
      if (const auto params = i.params->text(); !params.empty()) text << " {" << params << "}";
    if (i.kind == InstructionKind::move && i.step->dim >= 0) text << " dim=" << i.step->dim;
    if (i.kind == InstructionKind::move && i.step->split_dim >= 0) text << " split_dim=" << i.step->split_dim;
    if (i.kind == InstructionKind::reduce_scatter) text << " dim=" << i.dim;
    for (const auto& cost : traffic_of(i)) {
      if (i.kind == InstructionKind::talk) text << " " << cost.kind << "×" << cost.calls;
      if (!cost.axes.empty()) text << " axes=" << axes_text(i.step ? i.step->from.mesh() : mesh, cost.axes);
      text << " bytes=" << cost.bytes;
    }
    if (i.control && i.control->kind == ControlKind::counted)
      text << " " << i.control->length << " times" << (i.control->reverse ? ", last step first" : "");
    text << "  # " << (i.op ? i.op->name + " " : "") << site(i.where) << "\n";
    if (i.control) text << parts_text(*i.control);
  }
  text << "return";
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const auto& value = program.values[program.outputs[i]];
    text << (i ? ", %" : " %") << program.outputs[i] << " " << value.layout.spec();
  }
  text << "\n";
  return text.str();
}

void verify(const Program& program) {
  std::vector<bool> defined(program.values.size());
  const auto fail = [&](const Instruction& i, const std::string& what) {
    throw InternalError("program: " + (i.op ? i.op->name : std::string("instruction")) + " " + what + "\n" +
                        program_text(program));
  };
  for (const int v : program.inputs) defined[v] = true;
  for (const auto& i : program.instructions) {
    if (i.control)
      for (const auto& part : i.control->parts) verify(part);
    for (const int v : i.inputs)
      if (!defined[v]) fail(i, "reads %" + std::to_string(v) + " before it is defined");
    for (const int v : i.outputs) {
      if (defined[v]) fail(i, "defines %" + std::to_string(v) + " twice");
      defined[v] = true;
      const auto& value = program.values[v];
      value.layout.check_fits(value.type.shape, "program");
    }
  }
  for (const int v : program.outputs) {
    if (!defined[v]) throw InternalError("program: the output %" + std::to_string(v) + " is not defined");
    if (!program.values[v].partial_axes.empty())
      throw InternalError("program: the output %" + std::to_string(v) + " is not reduced");
  }
}

}  // namespace tessera
