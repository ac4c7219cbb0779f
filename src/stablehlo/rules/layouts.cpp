// Operations that say where arrays are.
#include "stablehlo/layouts.hpp"

#include "stablehlo/rules/custom_calls.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

// Layouts are given already where functions of single devices run.
Array placed(const OpCall& s, const std::optional<Sharding>& sharding) {
  if (!sharding || s.run.manual.mesh != nullptr) return s.x[0];
  return with_sharding_constraint(s.x[0], *sharding);
}

Arrays sharding_constraint(OpCall& s) {
  s.want_operands(1);
  const Attribute* sharding = s.find("sharding");
  if (sharding == nullptr) s.refuse("has no layout");
  return {placed(s, sharding_of(s.run.module, s.run.layouts, *sharding, s.x[0].ndim()))};
}

}  // namespace

Arrays gspmd_sharding(OpCall& s) {
  s.want_operands(1);
  return {placed(s, sharding_among(s.run.module, s.run.layouts, s.op.attributes, s.x[0].ndim()))};
}

void add_layouts(Rules& rules) {
  rules["sdy.sharding_constraint"] = sharding_constraint;
  rules["sdy.reshard"] = sharding_constraint;
}

}  // namespace tessera::stablehlo
