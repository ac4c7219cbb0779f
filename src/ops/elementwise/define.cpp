#include "ops/elementwise/define.hpp"

#include <algorithm>
#include <deque>

#include "ops/functions.hpp"

namespace tessera {
namespace {

Shape common_shape(std::span<const Type> in) {
  Shape shape = in[0].shape;
  for (const auto& type : in.subspan(1)) {
    const Shape& other = type.shape;
    std::vector<std::int64_t> extents(std::max(shape.size(), other.size()));
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const auto a = i < shape.size() ? shape[shape.size() - 1 - i] : 1,
                 b = i < other.size() ? other[other.size() - 1 - i] : 1;
      extents[extents.size() - 1 - i] = a == 1 ? b : a;
    }
    shape = Shape(std::move(extents));
  }
  return shape;
}

template <DtypeRule rule> std::vector<Type> infer(std::span<const Type> in, const Params&) {
  const auto values =
      in.subspan(in.size() == 3 && is_bool(in[0].dtype) ? 1 : 0);  // of where, without the condition
  Dtype dtype = values[0].dtype;
  if (rule == DtypeRule::real_part) dtype = real_dtype(dtype);
  if (rule == DtypeRule::predicate || rule == DtypeRule::comparison) dtype = bool_;
  const bool weak =
      std::all_of(values.begin(), values.end(), [](const Type& t) { return t.weak; }) && !is_bool(dtype);
  return {{common_shape(in), dtype, weak}};
}

FactorRule factors(std::span<const Type> in, std::span<const Type> out, const Params&) {
  return dimwise_factors(in, out);
}

// Batch dims to the front; per-example dims aligned behind them, so that broadcasting stays within an
// example.
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
      x = reshape(Operand(x, args.node.where), Shape(std::move(extents)));
    }
    in.push_back(std::move(x));
  }
  return {{record(*args.node.op, args.node.params, std::move(in), args.node.where)}, {0}};
}

std::vector<Type> (*infer_of(DtypeRule rule))(std::span<const Type>, const Params&) {
  switch (rule) {
    case DtypeRule::real_part: return infer<DtypeRule::real_part>;
    case DtypeRule::predicate: return infer<DtypeRule::predicate>;
    case DtypeRule::comparison: return infer<DtypeRule::comparison>;
    default: return infer<DtypeRule::numeric>;
  }
}

// The dtype in which the operands are taken.
WeakDtype operand_dtype(const Elementwise& op, std::span<const WeakDtype> types, std::source_location where) {
  WeakDtype common = promote(types);
  const auto refuse = [&](const char* takes) {
    std::string given;
    for (const auto& t : types) given += (given.empty() ? "" : ", ") + name(t.dtype);
    throw DtypeError(call_text(op.def.name.c_str(), where) + " takes " + takes + ", not " + given +
                     "; convert with astype");
  };
  switch (op.rule) {
    case DtypeRule::numeric:
    case DtypeRule::real_part: return is_bool(common.dtype) ? WeakDtype{int32, false} : common;
    case DtypeRule::ordered:
      if (is_complex(common.dtype)) refuse("numbers that have an order");
      return is_bool(common.dtype) ? WeakDtype{int32, false} : common;
    case DtypeRule::inexact: return is_inexact(common.dtype) ? common : WeakDtype{float32, common.weak};
    case DtypeRule::floating:
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

}  // namespace

Elementwise elementwise(const char* name, DtypeRule rule, Cotangents (*vjp)(const VjpArgs&),
                        std::string (*linear)(const Params&), const char* kernel) {
  Elementwise op;
  op.def.name = name;
  op.def.infer = infer_of(rule);
  op.def.factors = factors;
  op.def.vjp = vjp;
  op.def.batch = batch;
  op.def.linear_in = linear;
  op.row.kernel = kernel ? kernel : name;
  op.rule = rule;
  return op;
}

Elementwise elementwise_without_vjp(const char* name, DtypeRule rule, const char* why, const char* kernel) {
  auto op = elementwise(name, rule, nullptr, nullptr, kernel);
  op.def.no_vjp = why;
  return op;
}

const Elementwise& register_elementwise(Elementwise op) {
  static std::deque<Elementwise> rows;  // addresses stay
  rows.push_back(std::move(op));
  auto& row = rows.back();
  row.def.elementwise = &row.row;
  // The kernel of a row is the fused executor's; the record still says that it has one.
  row.def.kernel = [](const KernelArgs& a) {
    throw InternalError(a.op.name + ": elementwise ops run fused");
  };
  register_op(&row.def);
  return row;
}

Array apply(const Elementwise& op, std::vector<Operand> operands) {
  const auto where = operands[0].where;
  std::vector<WeakDtype> types;
  for (const auto& x : operands) {
    check_usable(x.array, op.def.name.c_str());
    types.push_back({x.array.dtype(), x.array.is_weakly_typed()});
  }
  for (std::size_t i = 1; i < operands.size(); ++i)
    broadcast_shapes(operands[0].array.shape(), operands[i].array.shape(), op.def.name.c_str(), where);
  if (operands.size() == 3)
    broadcast_shapes(operands[1].array.shape(), operands[2].array.shape(), op.def.name.c_str(), where);
  const auto dtype = operand_dtype(op, types, where);
  std::vector<Array> inputs;
  for (const auto& x : operands) inputs.push_back(cast_as(x.array, dtype, where));
  return record(op.def, no_params(), std::move(inputs), where);
}

}  // namespace tessera
