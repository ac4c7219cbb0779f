// Functions composed of other ops, which determine their layouts, gradients and batching.
#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/build.hpp"
#include "ops/collect/any_order.hpp"
#include "ops/functions.hpp"
#include "ops/sort/select.hpp"

namespace tessera {

Array diff(const Operand& x, int n, int axis) {
  const Call call("diff", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (n < 0)
    throw ArgumentError(call_text() + ": the number of differences " + std::to_string(n) + " is negative");
  Array y = x.array;
  const auto from = [&](const Slice& s) {
    std::vector<IndexPart> parts(dim, IndexPart(slice()));
    parts.emplace_back(s);
    return index(y, std::move(parts));
  };
  for (; n > 0 && y.shape()[dim] > 0; --n) {
    const Array later = from(slice(1, None)), earlier = from(slice(None, -1));
    y = is_bool(y.dtype()) ? not_equal(later, earlier) : subtract(later, earlier);
  }
  return y;
}

std::vector<Array> meshgrid(std::vector<Array> axes, const std::string& indexing,
                            std::source_location where) {
  const Call call("meshgrid", where);
  if (indexing != "xy" && indexing != "ij")
    throw ArgumentError(call_text() + ": indexing is '" + indexing + "'; it must be 'xy' or 'ij'");
  const std::size_t n = axes.size();
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < n; ++i) {
    check_usable(axes[i]);
    if (axes[i].ndim() > 1)
      throw ShapeError(call_text() + ": array " + std::to_string(i) + " has shape " +
                       to_string(axes[i].shape()) + "; each must have one dimension");
    extents.push_back(axes[i].size());
  }
  const auto dim_of = [&](std::size_t i) { return indexing == "xy" && n > 1 && i < 2 ? 1 - i : i; };
  Shape grid{extents};
  for (std::size_t i = 0; i < n; ++i) grid[dim_of(i)] = extents[i];
  std::vector<Array> result;
  for (std::size_t i = 0; i < n; ++i) {
    Shape aligned(std::vector<std::int64_t>(n, 1));
    aligned[dim_of(i)] = extents[i];
    result.push_back(broadcast_to(reshape(axes[i], aligned), grid));
  }
  return result;
}

Array isclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  const Call call("isclose", a.where);
  check_usable(a.array);
  check_usable(b.array);
  const Array same = equal(a, b);
  const Dtype dtype = promote(WeakDtype{a.array.dtype(), a.array.is_weakly_typed()},
                              WeakDtype{b.array.dtype(), b.array.is_weakly_typed()})
                          .dtype;
  if (!is_inexact(dtype) && rtol == 0 && atol == 0) return same;
  const Dtype exact = to_inexact(dtype);
  const Array x = cast_to(a.array, exact), y = cast_to(b.array, exact);
  // Infinities are close only to themselves; NaN to nothing, or to NaN (equal_nan).
  const Array near = (abs(x - y) <= atol + rtol * abs(y)) & isfinite(x) & isfinite(y);
  return equal_nan ? same | near | (isnan(x) & isnan(y)) : same | near;
}
Array allclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  const Call call("allclose", a.where);
  return all(isclose(a, b, rtol, atol, equal_nan));
}

Array ptp(const Operand& x, Axes axes, bool keepdims) {
  const Call call("ptp", x.where);
  return max(x, axes, keepdims) - min(x, axes, keepdims);
}

Array median(const Operand& x, int axis, bool keepdims) {
  const Call call("median", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim];
  if (n == 0)
    throw ShapeError(call_text() + ": the median of no elements (shape " + to_string(x.array.shape()) +
                     ", axis " + std::to_string(dim) + ") is not defined");
  if (is_complex(x.array.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  const Array values = moveaxis(cast_to(x.array, to_inexact(x.array.dtype())), dim, -1);
  const std::vector<std::int64_t> places{(n - 1) / 2, n / 2, n - 1};
  const Array sorted = is_half(values.dtype()) ? sort(values, -1) : elements_of_sorted(values, places);
  const auto at = [&](int i) { return sorted(ellipsis, is_half(values.dtype()) ? places[i] : i); };
  const Array last = at(2), middle = n % 2 ? at(1) : (at(0) + at(1)) * 0.5;
  const Array result = where(isnan(last), last, middle);  // NaN sorts last
  return keepdims ? expand_dims(result, dim) : result;
}
Array median(const Operand& x) {
  const Call call("median", x.where);
  check_usable(x.array);
  return median(in_any_order(x.array), 0);
}

// Weights of fewer dims than x belong to the reduced ones, in the order of the axes.
static Array weights_along(const Array& weights, const Shape& shape, const Axes& axes) {
  const int ndim = static_cast<int>(shape.size());
  if (axes.values.empty() || weights.ndim() == 0 || weights.ndim() == ndim)
    return broadcast_to(weights, shape);
  const std::vector<int> reduced = checked_dims(axes.values, ndim, false);
  std::vector<std::int64_t> expected, aligned(ndim, 1);
  for (const int d : reduced) expected.push_back(aligned[d] = shape[d]);
  if (weights.shape() != Shape(expected))
    throw ShapeError(call_text() + ": weights of shape " + to_string(weights.shape()) +
                     " over axes of shape " + to_string(Shape(expected)) + " of an array of shape " +
                     to_string(shape) + "; they have the shape of the array or of those axes");
  std::vector<int> order(reduced.size());  // of the weights' dims, as the array has them
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int i, int j) { return reduced[i] < reduced[j]; });
  return broadcast_to(reshape(transpose(weights, order), Shape(aligned)), shape);
}

Array average(const Operand& x, const Operand& weights, Axes axes, bool keepdims) {
  const Call call("average", x.where);
  check_usable(x.array);
  check_usable(weights.array);
  const Dtype dtype = to_inexact(promote(WeakDtype{x.array.dtype(), x.array.is_weakly_typed()},
                                         WeakDtype{weights.array.dtype(), weights.array.is_weakly_typed()})
                                     .dtype);
  if (is_half(dtype))
    return astype(average(astype(x, float32), astype(weights, float32), axes, keepdims), dtype);
  const Array values = cast_to(x.array, dtype);
  const Array w = weights_along(cast_to(weights.array, dtype), values.shape(), axes);
  return sum(values * w, axes, keepdims) / sum(w, axes, keepdims);
}

}  // namespace tessera
