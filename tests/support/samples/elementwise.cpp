// Elementwise ops: the rows of their table, and what their functions do beside.
#include <tessera/ops.hpp>
#include <tessera/ops/numpy.hpp>

#include "ops/elementwise/define.hpp"
#include "support/samples/table.hpp"

namespace tessera::test {

namespace {

// Shapes that broadcast: of each operand dims that others repeat, and both ways.
std::vector<std::vector<Shape>> shapes_of(int arity) {
  if (arity == 1) return {{{5, 3}}};
  if (arity == 2) return {{{5, 3}, {3}}, {{5, 1}, {2, 1, 3}}};
  return {{{5, 3}, {3}, {5, 1}}};
}

Smooth smoothness(const ElementwiseOp& op, Dtype dtype) {
  if (op.def.vjp.why() != nullptr || !is_inexact(dtype)) return Smooth::no;
  return op.trials.twice_differentiable ? Smooth::twice : Smooth::once;
}

void add_trial(Table& t, const ElementwiseOp& op, const Trial& trial, const std::vector<Shape>& shapes,
               const std::string& name) {
  std::vector<OperandSample> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool is_condition = static_cast<int>(i) < op.row.dtype_input;
    const auto [low, high] = is_condition ? Trial::Range{0, 1} : trial.operands[i];
    operands.push_back({shapes[i], low, high, is_condition ? bool_ : trial.dtype});
  }
  const auto call = [&op](In x) -> Out { return {op(std::vector<Operand>(x.begin(), x.end()))}; };
  t.add(name, std::move(operands), call, smoothness(op, trial.dtype));
}

void add_row(Table& t, const ElementwiseOp& op) {
  for (const auto& trial : op.trials.calls) {
    const std::string name = op.def.name + (is_complex(trial.dtype) ? "_complex" : "");
    if (trial.of_logarithm) {
      t.add(
          name, {{{5, 3}, -1, 1, int32}}, [&op](In x) -> Out { return {op({log(x[0])})}; }, Smooth::no);
      continue;
    }
    const auto shapes = shapes_of(op.row.kernel->arity());
    for (std::size_t i = 0; i < shapes.size(); ++i)
      add_trial(t, op, trial, shapes[i], name + (i == 0 ? "" : "_other_way"));
  }
}

}  // namespace

// The rows of the elementwise ops, and what their functions do beside.
void elementwise_samples(Table& t) {
  for (const ElementwiseOp* op : elementwise_ops()) add_row(t, *op);
  const std::pair<const char*, Array (*)(const Operand&, const Operand&)> mixed[] = {
      {"add", add}, {"subtract", subtract}, {"multiply", multiply}, {"divide", divide}, {"power", power}};
  for (const auto& [name, f] : mixed)
    t.add(std::string(name) + "_complex_and_real", {{{4, 3}, 0.5, 1.5, complex128}, {{4, 1}, 0.5, 1.5}},
          [f = f](In x) -> Out { return {f(x[0], x[1])}; });
  t.add("power_to_a_number", {{{5, 3}, -2, 2}}, [](In x) -> Out { return {power(x[0], 3.0)}; });
  t.add("astype_real_to_complex", {{{5, 3}}}, [](In x) -> Out { return {astype(x[0], complex128)}; });
  t.add(
      "astype_to_float32_and_back", {{{5, 3}, -2, 2}},
      [](In x) -> Out { return {astype(astype(x[0], float32), float64)}; }, Smooth::no);
}

// Ops of two operands, differentiable in one.
void special_samples(Table& t) {
  t.add("zeta_by_q", {{{5, 3}, 0.6, 3}}, [](In x) -> Out { return {zeta(2.5, x[0])}; });
  t.add("polygamma_by_x", {{{5, 3}, 0.6, 3}}, [](In x) -> Out { return {polygamma(2, x[0])}; });
  t.add("ldexp_by_x", {{{5, 3}}}, [](In x) -> Out { return {ldexp(x[0], 3), frexp(x[0]).first}; });
}

}  // namespace tessera::test
