// Reductions over dims: each rank reduces its block, and one all-reduce combines the results over a split
// dim.
#include "kernels/reduce/reduce.hpp"

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/in_float32.hpp"
#include "ops/reduce/reduction.hpp"
#include "ops/reduce/tree.hpp"

namespace tessera {
namespace {

bool is_reduced(const ReduceParams& p, int d) { return std::binary_search(p.dims.begin(), p.dims.end(), d); }

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const auto& p = params.as<ReduceParams>();
  std::vector<std::int64_t> extents;
  for (int d = 0; d < in[0].shape.ndim(); ++d)
    if (!is_reduced(p, d)) extents.push_back(in[0].shape[d]);
  return {{Shape(std::move(extents)), in[0].dtype}};
}

// The kept dims, then the reduced ones.
RuleReading read_reduced_last(const Params& params, std::span<const Shape> in) {
  const auto& p = params.as<ReduceParams>();
  std::vector<int> order;
  order.reserve(in[0].size());
  for (int d = 0; d < in[0].ndim(); ++d)
    if (!is_reduced(p, d)) order.push_back(d);
  order.insert(order.end(), p.dims.begin(), p.dims.end());
  return {{{{'K', std::ssize(p.dims)}}}, {std::move(order)}};
}

// The result with size-1 dims where dims were reduced, so that it broadcasts against the operand.
Array keep_dims(const Array& reduced, const VjpArgs& v) {
  const auto& p = v.node.params->as<ReduceParams>();
  Shape extents = v.in[0].shape();
  for (const int d : p.dims) extents[d] = 1;
  return reshape(reduced, extents);
}

Batched batch(const BatchArgs& args) {
  auto p = args.node.params->as<ReduceParams>();
  const Array x = batch_first(args.in[0], args.dims[0]);
  for (int& d : p.dims) ++d;
  return {{record(*args.node.op, make_params(std::move(p)), {x})}, {0}};
}

// Records are named after their reduction kind.
ReduceKind kind_of(const OpDef& op) { return *reduce_kind_named(op.name); }

void kernel(const KernelArgs& a) {
  const auto& p = a.params.as<ReduceParams>();
  if (a.in[0].elements() == 0)
    return kernels::fill_identity(kind_of(a.op), a.out[0].dtype, a.out[0].data, a.out[0].elements());
  kernels::reduce(kind_of(a.op), a.in[0].dtype, a.in[0].data, a.in[0].shape(), p.dims, a.out[0].data);
}

OpDef reduction(const char* name, const char* sentence, decltype(OpDef::vjp) vjp) {
  OpDef op;
  op.name = name;
  op.infer = infer;
  op.sharding = Rule(sentence, read_reduced_last);
  op.runs = Kernel{kernel};
  op.vjp = vjp;
  op.batch = batch;
  op.parts = Parts::all_dims;
  return op;
}

OpDef sum_record() {
  auto op = reduction("sum", "M.. K.. -> M.. | sum K", [](const VjpArgs& v) -> Cotangents {
    return {broadcast_to(keep_dims(v.cotangents[0], v), v.in[0].shape())};
  });
  op.linear = Linear::in_first;
  return op;
}
// In a ReproducibleScope the tree op `other` replaces it.
template <const OpDef& other> OpDef with_tree(OpDef op) {
  op.instead = [](const OpDef&, const ParamsPtr& params, const std::vector<Array>& in) {
    return tree_instead(other, params->as<ReduceParams>(), in[0]);
  };
  return op;
}
extern const OpDef tree_sum_op, tree_prod_op;
const OpDef sum_op = with_tree<tree_sum_op>(sum_record());
const OpDef prod_op =
    with_tree<tree_prod_op>(reduction("prod", "M.. K.. -> M.. | prod K", [](const VjpArgs& v) -> Cotangents {
      // The product of all other elements, valid at zeros too: with one zero only its cotangent is nonzero.
      const Array &x = v.in[0], zero = x == 0;
      const Array safe = where(zero, ones_like(x), x);
      const auto& p = v.node.params->as<ReduceParams>();
      const Array zeros_count = sum(astype(zero, int32), Axes(p.dims), true),
                  others = prod(safe, Axes(p.dims), true);
      const Array rest =
          where(zeros_count == 0, others / safe,
                where((zeros_count == 1) & zero, broadcast_to(others, x.shape()), zeros_like(x)));
      return {keep_dims(v.cotangents[0], v) * rest};
    }));
const OpDef tree_sum_op = tree_record(sum_op, "tree_sum", ReduceKind::sum);
const OpDef tree_prod_op = tree_record(prod_op, "tree_prod", ReduceKind::prod);

// Whether -0 or 0 is the greater depends on which comes first.
std::vector<Array> extremum_without_sign(const OpDef& op, const ParamsPtr& params,
                                         const std::vector<Array>& in) {
  if (!is_inexact(in[0].dtype())) return {};
  return {record_itself(op, params, in)[0] + 0};
}
OpDef extremum_record(OpDef op) {
  op.instead = extremum_without_sign;
  op.same_bits = SameBits::always;
  return op;
}
// Ties share the cotangent equally.
Cotangents extremum_vjp(const VjpArgs& v) {
  const auto& p = v.node.params->as<ReduceParams>();
  const Array chosen = astype(v.in[0] == keep_dims(v.out[0], v), v.in[0].dtype());
  return {keep_dims(v.cotangents[0], v) * chosen / sum(chosen, Axes(p.dims), true)};
}
const OpDef max_op = extremum_record(reduction("max", "M.. K.. -> M.. | max K", extremum_vjp));
const OpDef min_op = extremum_record(reduction("min", "M.. K.. -> M.. | min K", extremum_vjp));

constexpr NoRule no_vjp_of_bool{"its result is bool"};
const OpDef any_op = reduction("any", "M.. K.. -> M.. | any K", no_vjp_of_bool);
const OpDef all_op = reduction("all", "M.. K.. -> M.. | all K", no_vjp_of_bool);

// For bool, which the kernel counts as bytes.
OpDef count_record() {
  auto op = reduction("count_nonzero", "M.. K.. -> M.. | sum K",
                      [](const VjpArgs&) -> Cotangents { return Cotangents(1); });  // integers
  op.infer = [](std::span<const Type> in, const Params& params) -> std::vector<Type> {
    return {{infer(in, params)[0].shape, int32}};
  };
  return op;
}
const OpDef count_op = count_record();

const Registered registered[] = {Registered(sum_op),  Registered(prod_op), Registered(max_op),
                                 Registered(min_op),  Registered(any_op),  Registered(all_op),
                                 Registered(count_op)};

Array with_kept_dims(const Array& reduced, const Array& x, const std::vector<int>& dims, bool keepdims) {
  if (!keepdims) return reduced;
  Shape extents = x.shape();
  for (const int d : dims) extents[d] = 1;
  return reshape(reduced, extents);
}

Array reduce(const OpDef& op, const Array& x, const Axes& axes, bool keepdims) {
  check_usable(x);
  const auto dims = checked_dims(axes.values, x.ndim(), true);
  return with_kept_dims(record(op, make_params(ReduceParams{dims}), {x}), x, dims, keepdims);
}

// Small integers are summed in at least 32 bits; bool is counted.
Array summable(const Operand& x) {
  const Dtype d = x.array.dtype();
  if (is_bool(d) || d == int8 || d == int16) return astype(x, int32);
  if (d == uint8 || d == uint16) return astype(x, uint32);
  return x.array;
}

std::int64_t count_of(const Array& x, const Axes& axes) {
  std::int64_t count = 1;
  for (const int d : checked_dims(axes.values, x.ndim(), true)) count *= x.shape()[d];
  return count;
}

Array extremum(const OpDef& op, const Operand& x, const Axes& axes, bool keepdims) {
  check_usable(x.array);
  if (is_complex(x.array.dtype()))
    throw DtypeError(call_text() + ": complex numbers have no order; take it of abs(x)");
  if (count_of(x.array, axes) == 0 && x.array.size() == 0)
    throw ShapeError(call_text() + ": the " + op.name + " of no elements (shape " +
                     to_string(x.array.shape()) + ") is not defined");
  return reduce(op, x.array, axes, keepdims);
}

}  // namespace

std::optional<Reduction> reduction_of(const OpDef& op, const Params& params, const Shape& whole) {
  if (kernel_of(op) != kernel) return tree_reduction_of(op, params, whole);
  return Reduction{kind_of(op), params.as<ReduceParams>().dims};
}

Array sum(const Operand& x, Axes axes, bool keepdims) {
  const Call call("sum", x.where);
  check_usable(x.array);
  return reduce(sum_op, summable(x), axes, keepdims);
}
Array prod(const Operand& x, Axes axes, bool keepdims) {
  const Call call("prod", x.where);
  check_usable(x.array);
  return reduce(prod_op, summable(x), axes, keepdims);
}
Array sum(const Operand& x, Axes axes, Dtype dtype, bool keepdims) {
  const Call call("sum", x.where);
  check_usable(x.array);
  return reduce(sum_op, astype(x, dtype), axes, keepdims);
}
Array prod(const Operand& x, Axes axes, Dtype dtype, bool keepdims) {
  const Call call("prod", x.where);
  check_usable(x.array);
  return reduce(prod_op, astype(x, dtype), axes, keepdims);
}
Array max(const Operand& x, Axes axes, bool keepdims) {
  const Call call("max", x.where);
  return extremum(max_op, x, axes, keepdims);
}
Array min(const Operand& x, Axes axes, bool keepdims) {
  const Call call("min", x.where);
  return extremum(min_op, x, axes, keepdims);
}
Array any(const Operand& x, Axes axes, bool keepdims) {
  const Call call("any", x.where);
  return reduce(any_op, cast_to(x.array, bool_), axes, keepdims);
}
Array all(const Operand& x, Axes axes, bool keepdims) {
  const Call call("all", x.where);
  return reduce(all_op, cast_to(x.array, bool_), axes, keepdims);
}
Array count_nonzero(const Operand& x, Axes axes, bool keepdims) {
  const Call call("count_nonzero", x.where);
  check_usable(x.array);
  return reduce(count_op, is_bool(x.array.dtype()) ? x.array : not_equal(x, 0), axes, keepdims);
}

Array mean(const Operand& x, Axes axes, bool keepdims) {
  const Call call("mean", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return mean(wide, axes, keepdims); });
  const auto n = count_of(x.array, axes);
  const Array total = sum(cast_to(x.array, to_inexact(x.array.dtype())), axes, keepdims);
  return divide(total, static_cast<double>(n));
}

// Two passes: the mean first, then the mean square distance from it, so that a large mean costs no accuracy.
Array var(const Operand& x, Axes axes, bool keepdims, double correction) {
  const Call call("var", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return var(wide, axes, keepdims, correction); });
  const Array centred = subtract(x, mean(x, axes, true));
  const Array squares = is_complex(centred.dtype()) ? real(centred * conj(centred)) : square(centred);
  const double n = static_cast<double>(count_of(x.array, axes));
  return sum(squares, axes, keepdims) / (n > correction ? n - correction : 0.0);
}
Array var(const Operand& x, Axes axes, bool keepdims) {
  const Call call("var", x.where);
  return var(x, std::move(axes), keepdims, 0);
}
Array std(const Operand& x, Axes axes, bool keepdims, double correction) {
  const Call call("std", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return std(wide, axes, keepdims, correction); });
  return sqrt(var(x, std::move(axes), keepdims, correction));
}
Array std(const Operand& x, Axes axes, bool keepdims) {
  const Call call("std", x.where);
  return std(x, std::move(axes), keepdims, 0);
}

// The maximum is subtracted first, so that exp cannot overflow; an infinite maximum is not subtracted.
Array logsumexp(const Operand& x, Axes axes, bool keepdims) {
  const Call call("logsumexp", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return logsumexp(wide, axes, keepdims); });
  const Array values = cast_to(x.array, to_inexact(x.array.dtype()));
  const auto dims = checked_dims(axes.values, values.ndim(), true);
  const Array top = max(values, Axes(dims), true);
  const Array shift = where(isfinite(top), top, zeros_like(top));
  const Array result = log(sum(exp(values - shift), Axes(dims), true)) + shift;
  return keepdims ? result : squeeze(result, Axes(dims));
}

Array softmax(const Operand& x, int axis) {
  const Call call("softmax", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return softmax(wide, axis); });
  const Array values = cast_to(x.array, to_inexact(x.array.dtype()));
  const Array e = exp(values - max(values, axis, true));
  return e / sum(e, axis, true);
}
Array log_softmax(const Operand& x, int axis) {
  const Call call("log_softmax", x.where);
  check_usable(x.array);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return log_softmax(wide, axis); });
  const Array values = cast_to(x.array, to_inexact(x.array.dtype()));
  const Array shifted = values - max(values, axis, true);
  return shifted - log(sum(exp(shifted), axis, true));
}

}  // namespace tessera
