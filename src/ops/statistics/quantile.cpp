// Quantiles: sort, then interpolate the two elements around a fractional position (numpy's `virtual index`).
#include <tessera/detail/loops.hpp>
#include <tessera/ops/statistics.hpp>

#include <algorithm>
#include <sstream>

#include "ops/build.hpp"
#include "ops/collect/any_order.hpp"
#include "ops/functions.hpp"
#include "ops/known.hpp"

namespace tessera {
namespace {

// The position that a method reads among n sorted elements, and the fraction towards the next element.
struct Interpolation {
  Array at, part;
};

// alpha, beta of Hyndman and Fan (1996).
struct Continuous {
  const char* method;
  double alpha, beta;
};
constexpr Continuous continuous[] = {
    {"linear", 1, 1},  {"interpolated_inverted_cdf", 0, 1},   {"hazen", 0.5, 0.5},
    {"weibull", 0, 0}, {"median_unbiased", 1 / 3.0, 1 / 3.0}, {"normal_unbiased", 3 / 8.0, 3 / 8.0}};

Array one_where(const Array& condition, const Array& like) {
  return where(condition, ones_like(like), zeros_like(like));
}

Interpolation place_of(const std::string& method, const Array& n, const Array& q) {
  for (const auto& c : continuous)
    if (method == c.method) {
      const Array v = method == "linear" ? (n - 1) * q : n * q + (c.alpha + q * (1 - c.alpha - c.beta)) - 1;
      return {floor(v), v - floor(v)};
    }
  const Array v = (n - 1) * q, zero = zeros_like(v);
  if (method == "lower") return {floor(v), zero};
  if (method == "higher") return {ceil(v), zero};
  if (method == "nearest") return {round(v), zero};
  if (method == "midpoint") return {floor(v), 0.5 * one_where(floor(v) != v, v)};
  const Array w = n * q - 1, fraction = w - floor(w);
  if (method == "inverted_cdf") return {where(fraction == 0, floor(w), floor(w) + 1), zero};
  if (method == "averaged_inverted_cdf") return {floor(w), where(fraction == 0, 0.5, ones_like(w))};
  if (method == "closest_observation") {
    const Array u = w - 0.5, below = floor(u);
    return {where((u == below) & (remainder(below, 2) == 1), below, below + 1), zero};
  }
  throw ArgumentError(
      call_text() + ": there is no method '" + method +
      "'; take linear, lower, higher, midpoint, nearest, inverted_cdf, averaged_inverted_cdf, "
      "closest_observation, interpolated_inverted_cdf, hazen, weibull, median_unbiased or "
      "normal_unbiased");
}

// Joins the reduced dims to one, the last.
Array reduced_last(const Array& x, const std::vector<int>& dims) {
  std::vector<int> order;
  std::vector<std::int64_t> extents;
  std::int64_t reduced = 1;
  for (int d = 0; d < x.ndim(); ++d) {
    if (std::binary_search(dims.begin(), dims.end(), d)) {
      reduced *= x.shape()[d];
      continue;
    }
    order.push_back(d);
    extents.push_back(x.shape()[d]);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  extents.push_back(reduced);
  return reshape(transpose(x, order), Shape(std::move(extents)));
}

// The elements of sorted lines at integral positions: (lines..., q) from (lines..., n).
Array elements_at(const Array& sorted, const Array& at) {
  const auto last = static_cast<double>(sorted.shape().back() - 1);
  const Array i = astype(clip(at, 0.0, last), int64);
  if (i.ndim() == 1) return take(sorted, i, sorted.ndim() - 1);  // equal positions in every line
  return take_along_axis(sorted, i, -1);
}

struct Question {
  const std::string& method;
  bool passes_over_nan;
};

// Throws NumPy's error if the values are known; values traced or computed are clamped as in JAX.
void check_parts(const Array& x, const Array& q, double whole) {
  check_usable(x);
  check_usable(q);
  const auto range = detail::is_unknown(x) ? std::nullopt : known_range(q);
  if (range && (range->first < 0 || range->second > whole)) {
    const double wrong = range->first < 0 ? range->first : range->second;
    std::ostringstream text;
    text << call_text() << ": " << wrong << " is no part of the elements, which goes from 0 to " << whole;
    throw ArgumentError(text.str());
  }
}

Array quantiles(const Array& x, const Array& q, const Axes& axes, const Question& question, bool keepdims) {
  check_usable(x);
  check_usable(q);
  if (is_complex(x.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  const auto dims = checked_dims(axes.values, x.ndim(), true);
  const Array inexact = cast_to(x, to_inexact(x.dtype()));
  const bool is_of_all = dims.size() == x.shape().size();
  const Array values = is_of_all ? in_any_order(inexact) : reduced_last(inexact, dims);
  const auto n = values.shape().back();
  if (n == 0)
    throw ShapeError(call_text() + ": a quantile of no elements (shape " + to_string(x.shape()) +
                     ") is not defined");
  const Array sorted = sort(values, -1);
  const Array parts = reshape(cast_to(q, float64), Shape{q.size()});
  const Array last = sorted(ellipsis, slice(n - 1, n));
  Array count = full({1}, static_cast<double>(n), float64), bad = isnan(last);
  if (question.passes_over_nan) {
    count = astype(sum(!isnan(sorted), Axes(-1), true), float64);
    bad = count == 0;
  }
  const auto place = place_of(question.method, count, parts);
  const Array highest = maximum(count - 1, 0.0);
  const Array below = clip(place.at, 0.0, highest), above = clip(place.at + 1, 0.0, highest);
  const Array low = elements_at(sorted, below), high = elements_at(sorted, above);
  const Array part = astype(place.part, values.dtype());
  // The difference of equal infinities would be NaN.
  const Array between = where((low == high) | (part == 0), low, low + (high - low) * part);
  const Array found = where(bad, astype(std::numeric_limits<double>::quiet_NaN(), values.dtype()), between);

  Array result = moveaxis(found, -1, 0);
  auto extents = q.shape().vector();
  for (int d = 0; d < x.ndim(); ++d) {
    const bool is_reduced = std::binary_search(dims.begin(), dims.end(), d);
    if (!is_reduced || keepdims) extents.push_back(is_reduced ? 1 : x.shape()[d]);
  }
  return reshape(result, Shape(std::move(extents)));
}

}  // namespace

Array quantile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("quantile", x.where);
  check_parts(x.array, q.array, 1);
  return quantiles(x.array, q.array, axes, {method, false}, keepdims);
}
Array median(const Operand& x, std::vector<int> axes, bool keepdims) {
  const Call call("median", x.where);
  check_usable(x.array);
  return quantiles(x.array, 0.5, std::move(axes), {"midpoint", false}, keepdims);
}
Array percentile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("percentile", x.where);
  check_parts(x.array, q.array, 100);
  return quantiles(x.array, astype(q, float64) / 100, axes, {method, false}, keepdims);
}
Array nanquantile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("nanquantile", x.where);
  check_parts(x.array, q.array, 1);
  return quantiles(x.array, q.array, axes, {method, true}, keepdims);
}
Array nanpercentile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("nanpercentile", x.where);
  check_parts(x.array, q.array, 100);
  return quantiles(x.array, astype(q, float64) / 100, axes, {method, true}, keepdims);
}
Array nanmedian(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanmedian", x.where);
  return quantiles(x.array, 0.5, axes, {"linear", true}, keepdims);
}

}  // namespace tessera
