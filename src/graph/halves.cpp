#include "graph/halves.hpp"

#include <algorithm>

#include "graph/elementwise_row.hpp"
#include "graph/hooks.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace tessera {
namespace {

// Whether a row takes the inputs unconverted: casts and broadcasts do, and ops that only select among their
// operands have kernels for items of two bytes.
bool row_takes(const ElementwiseRow& row, const std::vector<Array>& inputs) {
  return row.kernel == nullptr || row.kernel->of(inputs[row.dtype_input].dtype()) != nullptr;
}

}  // namespace

std::optional<Dtype> half_to_widen(const OpDef& op, const Params& params, const std::vector<Array>& inputs) {
  const auto half =
      std::find_if(inputs.begin(), inputs.end(), [](const Array& x) { return is_half(x.dtype()); });
  if (half == inputs.end()) return std::nullopt;
  const Halves halves = op.halves(params);
  if (halves == Halves::refused)
    throw DtypeError(call_text() + ": " + name(half->dtype()) + " has too few digits for " + op.name +
                     "; convert the operand first, as astype(x, float32), and the result back where it may "
                     "be rounded");
  const auto* row = elementwise_row(op);
  if (halves == Halves::moved || (row != nullptr && row_takes(*row, inputs))) return std::nullopt;
  return half->dtype();
}

std::vector<Array> record_widened(const OpDef& op, ParamsPtr params, std::vector<Array> inputs, Dtype half) {
  std::vector<Type> types;
  for (const auto& x : inputs) types.push_back(output_of(x).type);
  const auto results = op.infer(types, *params);
  for (auto& x : inputs)
    if (x.dtype() == half) x = convert_half(x, float32);
  auto widened = record_all(op, std::move(params), std::move(inputs));
  for (std::size_t i = 0; i < widened.size(); ++i)
    if (results[i].dtype == half) widened[i] = convert_half(widened[i], half);
  return widened;
}

}  // namespace tessera
