#include "graph/op.hpp"

#include "graph/elementwise_row.hpp"

namespace tessera {

FactorRule Rule::on(std::span<const Shape> in, std::span<const Shape> out, const Params& params) const {
  return reading == nullptr ? text.on(in, out) : text.on(in, out, reading(params, in));
}

Parts parts_of(const OpDef& op) {
  const bool is_any_part = is_elementwise(op) || (is_alias(op) && rule_of(op) != nullptr);
  return is_any_part ? Parts::all_dims : op.parts;
}
bool is_alias(const OpDef& op) { return std::holds_alternative<Alias>(op.runs); }
bool is_elementwise(const OpDef& op) {
  const auto* row = elementwise_row(op);
  return row != nullptr && !row->is_broadcast;
}
bool is_broadcast(const OpDef& op) {
  const auto* row = elementwise_row(op);
  return row != nullptr && row->is_broadcast;
}
bool is_placed_by_rule(const OpDef& op) { return std::holds_alternative<Rule>(op.sharding); }

bool is_one_local_step(const OpDef& op) {
  return is_placed_by_rule(op) && !std::holds_alternative<Lower>(op.runs) &&
         !std::holds_alternative<Communicating>(op.runs);
}

const ElementwiseRow* elementwise_row(const OpDef& op) {
  const auto* per_element = std::get_if<PerElement>(&op.runs);
  return per_element == nullptr ? nullptr : per_element->row;
}
bool computes(const OpDef& op, const kernels::Map& kernel) {
  const auto* row = elementwise_row(op);
  return row != nullptr && row->kernel == &kernel;
}
const Lower* lowering(const OpDef& op) { return std::get_if<Lower>(&op.runs); }

KernelFunction kernel_of(const OpDef& op) {
  if (const auto* kernel = std::get_if<Kernel>(&op.runs)) return kernel->run;
  if (const auto* communicating = std::get_if<Communicating>(&op.runs)) return communicating->alone;
  if (const auto* lower = std::get_if<Lower>(&op.runs)) return lower->kernel;
  if (const auto* per_element = std::get_if<PerElement>(&op.runs)) return per_element->kernel;
  return nullptr;
}
CommunicatingFunction communicating_function(const OpDef& op) {
  if (const auto* communicating = std::get_if<Communicating>(&op.runs)) return communicating->together;
  if (const auto* lower = std::get_if<Lower>(&op.runs)) return lower->communicate;
  return nullptr;
}
const Rule* rule_of(const OpDef& op) {
  if (const auto* rule = std::get_if<Rule>(&op.sharding)) return rule;
  const auto* own = std::get_if<PlacementRule>(&op.sharding);
  return own == nullptr ? nullptr : own->rule;
}

}  // namespace tessera
