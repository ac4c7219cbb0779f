// Reductions that ignore NaN: NaN is replaced by the neutral element and not counted.
#include <tessera/ops/statistics.hpp>

#include <limits>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool may_hold_nan(const Array& x) { return is_inexact(x.dtype()); }
Array without(const Array& x, double instead) {
  return may_hold_nan(x) ? where(isnan(x), astype(instead, x.dtype()), x) : x;
}
// A test of its own beside isnan(x): each fuses with its reduction, but a shared mask is written to memory.
Array all_nan(const Array& x, const Axes& axes, bool keepdims) { return all(x != x, axes, keepdims); }
Array usable(const Operand& x) {
  check_usable(x.array);
  return x.array;
}
Array how_many(const Array& x, const Axes& axes, bool keepdims, Dtype dtype) {
  return sum(!isnan(x), axes, dtype, keepdims);
}
Array real_nan(Dtype dtype) { return astype(std::numeric_limits<double>::quiet_NaN(), dtype); }

Array mean_of(const Array& x, const Axes& axes, bool keepdims) {
  return sum(without(x, 0), axes, keepdims) / how_many(x, axes, keepdims, real_dtype(x.dtype()));
}

Array extremum(const Operand& x, const Axes& axes, bool keepdims, bool largest) {
  const Array a = usable(x);
  if (!may_hold_nan(a)) return largest ? max(x, axes, keepdims) : min(x, axes, keepdims);
  const Array found =
      largest ? max(without(a, -infinity), axes, keepdims) : min(without(a, infinity), axes, keepdims);
  return where(all_nan(a, axes, keepdims), real_nan(a.dtype()), found);
}

Array place_of_extremum(const Operand& x, int axis, bool keepdims, bool largest) {
  const Array a = usable(x);
  if (!may_hold_nan(a)) return largest ? argmax(x, axis, keepdims) : argmin(x, axis, keepdims);
  const Array at =
      largest ? argmax(without(a, -infinity), axis, keepdims) : argmin(without(a, infinity), axis, keepdims);
  return where(all_nan(a, axis, keepdims), -1, at);
}
Array flat(const Operand& x) {
  const Array a = usable(x);
  return reshape(a, Shape{a.size()});
}

}  // namespace

Array nansum(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nansum", x.where);
  return sum(without(usable(x), 0), axes, keepdims);
}
Array nanprod(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanprod", x.where);
  return prod(without(usable(x), 1), axes, keepdims);
}
Array nanmean(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanmean", x.where);
  const Array a = usable(x);
  return may_hold_nan(a) ? mean_of(a, axes, keepdims) : mean(x, axes, keepdims);
}
Array nanvar(const Operand& x, Axes axes, bool keepdims, double correction) {
  const Call call("nanvar", x.where);
  const Array a = usable(x);
  if (!may_hold_nan(a)) return var(x, axes, keepdims, correction);
  // Before the square: in the backward pass 0 times NaN is NaN. An infinity away from an infinite mean stays
  // NaN.
  const Array away = where(isnan(a), 0, a - mean_of(a, axes, true));
  const Array squares = is_complex(a.dtype()) ? square(real(away)) + square(imag(away)) : square(away);
  const Array n = how_many(a, axes, keepdims, squares.dtype()) - correction;
  return where(n > 0, sum(squares, axes, keepdims) / n, real_nan(squares.dtype()));
}
Array nanstd(const Operand& x, Axes axes, bool keepdims, double correction) {
  const Call call("nanstd", x.where);
  return sqrt(nanvar(x, axes, keepdims, correction));
}
Array nanmax(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanmax", x.where);
  return extremum(x, axes, keepdims, true);
}
Array nanmin(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanmin", x.where);
  return extremum(x, axes, keepdims, false);
}
Array nanargmax(const Operand& x, int axis, bool keepdims) {
  const Call call("nanargmax", x.where);
  return place_of_extremum(x, axis, keepdims, true);
}
Array nanargmax(const Operand& x) {
  const Call call("nanargmax", x.where);
  return place_of_extremum(flat(x), 0, false, true);
}
Array nanargmin(const Operand& x, int axis, bool keepdims) {
  const Call call("nanargmin", x.where);
  return place_of_extremum(x, axis, keepdims, false);
}
Array nanargmin(const Operand& x) {
  const Call call("nanargmin", x.where);
  return place_of_extremum(flat(x), 0, false, false);
}
Array nancumsum(const Operand& x, int axis) {
  const Call call("nancumsum", x.where);
  return cumsum(without(usable(x), 0), axis);
}
Array nancumprod(const Operand& x, int axis) {
  const Call call("nancumprod", x.where);
  return cumprod(without(usable(x), 1), axis);
}

}  // namespace tessera
