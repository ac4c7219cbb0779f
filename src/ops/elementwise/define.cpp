#include "ops/elementwise/define.hpp"

#include <algorithm>

#include "ops/functions.hpp"

namespace tessera {
namespace {

Shape common_shape(std::span<const Type> in) {
  Shape shape = in[0].shape;
  for (const auto& type : in.subspan(1)) shape = broadcast_shapes(shape, type.shape);
  return shape;
}

template <DtypeRule rule> std::vector<Type> infer(std::span<const Type> in, const Params&) {
  const auto values = in.subspan(rule == DtypeRule::choice ? 1 : 0);  // without the condition
  Dtype dtype = values[0].dtype;
  if (rule == DtypeRule::real_part) dtype = real_dtype(dtype);
  if (rule == DtypeRule::parts) dtype = complex_dtype(dtype);
  if (rule == DtypeRule::predicate || rule == DtypeRule::comparison) dtype = bool_;
  const bool weak = std::all_of(values.begin(), values.end(), [](const Type& t) { return t.weak; }) &&
                    !is_bool(dtype) && rule != DtypeRule::parts;
  std::vector<Type> result;
  result.push_back({common_shape(in), dtype, weak});
  return result;
}

// Moves batch dims to the front; the dims of an example are aligned behind them, so that broadcasting stays
// within an example.
Batched batch(const BatchArgs& args) {
  int ndim = 0;
  for (std::size_t i = 0; i < args.in.size(); ++i)
    ndim = std::max(ndim, args.in[i].ndim() - (args.dims[i] == not_batched ? 0 : 1));
  std::vector<Array> in;
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    if (args.dims[i] == not_batched) {
      in.push_back(args.in[i]);
      continue;
    }
    Array x = batch_first(args.in[i], args.dims[i]);
    if (x.ndim() - 1 < ndim) {
      std::vector<std::int64_t> extents(static_cast<std::size_t>(ndim) + 1, 1);
      extents[0] = x.shape()[0];
      for (int d = 1; d < x.ndim(); ++d) extents[ndim + 1 - x.ndim() + d] = x.shape()[d];
      x = reshape(x, Shape(std::move(extents)));
    }
    in.push_back(std::move(x));
  }
  return {{record(*args.node.op, args.node.params, std::move(in))}, {0}};
}

std::vector<Type> (*infer_of(DtypeRule rule))(std::span<const Type>, const Params&) {
  switch (rule) {
    case DtypeRule::real_part: return infer<DtypeRule::real_part>;
    case DtypeRule::predicate: return infer<DtypeRule::predicate>;
    case DtypeRule::comparison: return infer<DtypeRule::comparison>;
    case DtypeRule::parts: return infer<DtypeRule::parts>;
    case DtypeRule::choice: return infer<DtypeRule::choice>;
    default: return infer<DtypeRule::numeric>;
  }
}

// The dtype to which the operands are cast.
WeakDtype operand_dtype(const ElementwiseOp& op, std::span<const WeakDtype> types) {
  WeakDtype common = promote(types);
  const auto refuse = [&](const char* takes) {
    std::string given;
    for (const auto& t : types) given += (given.empty() ? "" : ", ") + name(t.dtype);
    throw DtypeError(call_text() + " takes " + takes + ", not " + given + "; convert with astype");
  };
  switch (op.rule) {
    case DtypeRule::numeric:
    case DtypeRule::real_part: return is_bool(common.dtype) ? WeakDtype{int32, false} : common;
    case DtypeRule::ordered:
      if (is_complex(common.dtype)) refuse("numbers that have an order");
      return is_bool(common.dtype) ? WeakDtype{int32, false} : common;
    case DtypeRule::inexact: return is_inexact(common.dtype) ? common : WeakDtype{float32, common.weak};
    case DtypeRule::floating:
    case DtypeRule::parts:
      if (is_complex(common.dtype)) refuse("real numbers");
      return is_inexact(common.dtype) ? common : WeakDtype{float32, common.weak};
    case DtypeRule::integral:
      if (is_inexact(common.dtype)) refuse("integers or bool");
      return common;
    case DtypeRule::shift:
      if (!is_integer(common.dtype)) refuse("integers");
      return common;
    default: return common;
  }
}

// Fills in the complete op record.
OpDef record_of(const char* name, decltype(OpDef::infer) infer, const Derivative& derivative,
                const ElementwiseRow* row) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.sharding = Rule("{D..} -> D..");
  def.runs = PerElement{row};
  def.vjp = derivative.vjp;
  def.batch = batch;
  def.linear = derivative.linear;
  return def;
}

std::vector<const ElementwiseOp*>& rows() {
  static std::vector<const ElementwiseOp*> all;
  return all;
}

void check_broadcast(const OperandList& x) {
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = i + 1; j < x.size(); ++j) broadcast_shapes(x[i].array.shape(), x[j].array.shape());
}

}  // namespace

ElementwiseOp::ElementwiseOp(const kernels::Map& kernel, DtypeRule rule, const char* says, Trials trials,
                             Derivative derivative, const char* name)
    : rule(rule),
      says(says),
      trials(std::move(trials)),
      row{&kernel, rule == DtypeRule::choice ? 1 : 0},
      def(record_of(name == nullptr ? kernel.name() : name, infer_of(rule), derivative, &row)) {
  rows().push_back(this);
  register_op(&def);
}
ElementwiseOp::ElementwiseOp(const char* name, const char* says, Derivative derivative,
                             decltype(OpDef::infer) infer)
    : rule(DtypeRule::any), says(says), row{nullptr}, def(record_of(name, infer, derivative, &row)) {
  rows().push_back(this);
  register_op(&def);
}

Array ElementwiseOp::operator()(const OperandList& operands) const {
  const Call call(def.name.c_str(), operands[0].where);
  const auto conditions = row.dtype_input;
  detail::InlineVector<WeakDtype, 3> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Array& x = operands[i].array;
    check_usable(x);
    types.push_back({x.dtype(), x.is_weakly_typed()});
  }
  check_broadcast(operands);
  auto dtype = operand_dtype(*this, std::span<const WeakDtype>(types).subspan(conditions));
  // A plain number beyond int32 made it so wide; as a weak one it would wrap around beside int32.
  if (dtype.dtype == int64 || dtype.dtype == uint64) dtype.weak = false;
  std::vector<Array> inputs;
  inputs.reserve(operands.size());
  for (int i = 0; i < static_cast<int>(operands.size()); ++i)
    inputs.push_back(i < conditions ? cast_to(operands[i].array, bool_) : cast_as(operands[i].array, dtype));
  return record(def, no_params(), std::move(inputs));
}

const std::vector<const ElementwiseOp*>& elementwise_ops() { return rows(); }

}  // namespace tessera
