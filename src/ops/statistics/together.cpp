// Statistics of several variables, and interpolation through points.
#include <tessera/ops/statistics.hpp>

#include <algorithm>

#include "kernels/sort/interpolate.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

Array covariance(const Operand& x, bool rowvar, double correction) {
  check_usable(x.array);
  if (x.array.ndim() > 2)
    throw ShapeError(call_text() + ": the array has shape " + to_string(x.array.shape()) +
                     "; it must have one or two dimensions, variables and observations");
  Array a = cast_to(x.array, to_inexact(x.array.dtype()));
  if (a.ndim() < 2)
    a = reshape(a, Shape{1, a.size()});
  else if (!rowvar)
    a = transpose(a);
  const auto n = static_cast<double>(a.shape()[1]);
  const Array away = a - mean(a, 1, true);
  const Array products = matmul(away, transpose(is_complex(a.dtype()) ? conj(away) : away));
  const Array result = products / (n - correction);
  return result.size() == 1 ? reshape(result, Shape{}) : result;
}

// ---- interp ----

struct InterpParams {
  std::optional<double> left, right;
  template <class V> void fields(V&& visit) const {
    visit("left", left);
    visit("right", right);
  }
};
// One pass over known values: x, xp, fp of one dtype. Traced ones record the several ops that
// have derivatives.
const OpDef interp_op{
    .name = "interp",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, in[0].dtype}};
    },
    .sharding = Rule("V.., n, n -> V.. | whole n"),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = a.params.as<InterpParams>();
      kernels::interpolate(a.in[0].dtype, a.in[0].data, a.in[0].elements(),
                           {a.in[1].data, a.in[2].data, a.in[1].elements(), p.left, p.right}, a.out[0].data);
    }},
    .vjp = NoRule{"interp records other ops of what is differentiated"},
    .batch = NoRule{"interp records other ops of what is mapped"},
    .parts = Parts::unreduced_dims,
};
const Registered registered_interp(interp_op);

// Whether every rank may hold the points whole: they are few, and no layout splits them.
bool are_whole(const Array& points) {
  constexpr std::int64_t few = 1 << 16;  // of a table from a file too
  const auto& sharding = output_of(points).sharding;
  return points.size() <= few && (!sharding || sharding->is_fully_replicated());
}
bool is_one_pass(const Array& at, const Array& points, const Array& values) {
  for (const Array* x : {&at, &points, &values})
    if (x->node()->traced || x->node()->region) return false;
  return (at.dtype() == float32 || at.dtype() == float64) && values.dtype() == at.dtype() &&
         are_whole(points) && are_whole(values);
}

}  // namespace

Array cov(const Operand& x, bool rowvar, double correction) {
  const Call call("cov", x.where);
  return covariance(x, rowvar, correction);
}

Array corrcoef(const Operand& x, bool rowvar) {
  const Call call("corrcoef", x.where);
  const Array c = covariance(x, rowvar, 1);
  if (c.ndim() == 0) return c / c;
  const Array deviation = sqrt(real(diagonal(c)));
  return c / expand_dims(deviation, 1) / expand_dims(deviation, 0);
}

Array interp(const Operand& x, const Operand& xp, const Operand& fp, std::optional<double> left,
             std::optional<double> right) {
  const Call call("interp", x.where);
  check_usable(x.array);
  check_usable(xp.array);
  check_usable(fp.array);
  if (xp.array.ndim() != 1 || fp.array.shape() != xp.array.shape() || xp.array.size() == 0)
    throw ShapeError(call_text() + ": the points have shapes " + to_string(xp.array.shape()) + " and " +
                     to_string(fp.array.shape()) + "; both must be 1-D, of one size, and hold a point");
  const Dtype dtype = to_inexact(promote(WeakDtype{x.array.dtype(), x.array.is_weakly_typed()},
                                         WeakDtype{xp.array.dtype(), xp.array.is_weakly_typed()})
                                     .dtype);
  const Array at = cast_to(x.array, dtype), points = cast_to(xp.array, dtype),
              values = cast_to(fp.array, to_inexact(fp.array.dtype()));
  if (is_one_pass(at, points, values))
    return record(interp_op, make_params(InterpParams{left, right}), {at, points, values});
  const auto n = points.size();
  const Array i = clip(searchsorted(points, at, "right"), n > 1 ? 1 : 0, n - 1), before = maximum(i - 1, 0);
  const Array x0 = take(points, before, 0), dx = take(points, i, 0) - x0;
  const Array f0 = take(values, before, 0), df = take(values, i, 0) - f0;
  const Array step = where(dx == 0, ones_like(dx), dx);
  Array result = where(dx == 0, f0, f0 + (at - x0) / step * df);
  const auto beyond = [&](const std::optional<double>& given, int end) {
    return given ? astype(*given, values.dtype()) : values(end);
  };
  result = where(at < points(0), beyond(left, 0), result);
  return where(at > points(-1), beyond(right, -1), result);
}

}  // namespace tessera
