// Quantiles: the two elements around a fractional position (numpy's `virtual index`), interpolated.
#include <tessera/detail/loops.hpp>
#include <tessera/ops/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ops/build.hpp"
#include "ops/collect/any_order.hpp"
#include "ops/functions.hpp"
#include "ops/known.hpp"
#include "ops/sort/select.hpp"

namespace tessera {
namespace {

// The position that a method reads among n sorted elements, and the fraction towards the next element: as
// numbers if n and q are known, else as arrays.
template <class N> struct Interpolation { N at, part; };

// alpha, beta of Hyndman and Fan (1996).
struct Continuous {
  const char* method;
  double alpha, beta;
};
constexpr Continuous continuous[] = {
    {"linear", 1, 1},  {"interpolated_inverted_cdf", 0, 1},   {"hazen", 0.5, 0.5},
    {"weibull", 0, 0}, {"median_unbiased", 1 / 3.0, 1 / 3.0}, {"normal_unbiased", 3 / 8.0, 3 / 8.0}};

// Numbers have the functions of arrays that place_of calls.
using std::ceil, std::floor;
double where(bool condition, double a, double b) { return condition ? a : b; }
double to_nearest(double x) { return std::nearbyint(x); }  // halves to even
Array to_nearest(const Array& x) { return round(x); }

template <class N> Interpolation<N> place_of(const std::string& method, const N& n, const N& q) {
  for (const auto& c : continuous)
    if (method == c.method) {
      const N v = method == "linear" ? (n - 1) * q : n * q + (c.alpha + q * (1 - c.alpha - c.beta)) - 1;
      return {floor(v), v - floor(v)};
    }
  const N v = (n - 1) * q, one = where(q == q, 1.0, 1.0), zero = one - 1;
  if (method == "lower") return {floor(v), zero};
  if (method == "higher") return {ceil(v), zero};
  if (method == "nearest") return {to_nearest(v), zero};
  if (method == "midpoint") return {floor(v), where(floor(v) != v, one * 0.5, zero)};
  const N w = n * q - 1, fraction = w - floor(w);
  if (method == "inverted_cdf") return {where(fraction == 0, floor(w), floor(w) + 1), zero};
  if (method == "averaged_inverted_cdf") return {floor(w), where(fraction == 0, one * 0.5, one)};
  if (method == "closest_observation") {
    const N u = w - 0.5, below = floor(u), is_odd = below - 2 * floor(below / 2);
    return {where((u == below) & (is_odd == 1), below, below + 1), zero};
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
  double whole = 1;  // the parts are of this: 100 for percentiles
};

// Elements below and above each place, (lines..., q) each, and the fraction between them.
struct Neighbours {
  Array low, high, part;
  Array is_bad;  // (lines..., 1): the result is NaN
};

// Each part is interpolated between its neighbours. The difference of equal infinities would be NaN.
Array between(const Neighbours& n) {
  const Array nan = astype(std::numeric_limits<double>::quiet_NaN(), n.low.dtype());
  return where(n.is_bad, nan,
               where((n.low == n.high) | (n.part == 0), n.low, n.low + (n.high - n.low) * n.part));
}

Neighbours found_by_sorting(const Array& values, const Array& parts, const Question& question) {
  const auto n = values.shape().back();
  const Array sorted = sort(values, -1), last = sorted(ellipsis, slice(n - 1, n));
  Array count = full({1}, static_cast<double>(n), float64), is_bad = isnan(last);
  if (question.passes_over_nan) {
    count = astype(sum(!isnan(sorted), Axes(-1), true), float64);
    is_bad = count == 0;
  }
  const auto place = place_of<Array>(question.method, count, parts);
  const Array highest = maximum(count - 1, 0.0);
  const Array below = clip(place.at, 0.0, highest), above = clip(place.at + 1, 0.0, highest);
  return {elements_at(sorted, below), elements_at(sorted, above), astype(place.part, values.dtype()),
          is_bad | isnan(parts)};
}

// Known places among n elements: few of them are selected without sorting.
struct KnownPlaces {
  std::vector<std::int64_t> low, high, all;  // of each part; all: once each, ascending
  std::vector<double> part;

  KnownPlaces(const std::string& method, std::int64_t n, const std::vector<double>& parts) {
    const auto last = static_cast<double>(n - 1);
    for (const double q : parts) {
      const auto place = place_of<double>(method, static_cast<double>(n), q);
      low.push_back(static_cast<std::int64_t>(std::clamp(place.at, 0.0, last)));
      high.push_back(static_cast<std::int64_t>(std::clamp(place.at + 1, 0.0, last)));
      part.push_back(place.part);
      all.insert(all.end(), {low.back(), high.back()});
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }
  // Indices of places in `all`.
  Array among_all(std::vector<std::int64_t> places) const {
    for (auto& place : places) place = std::ranges::lower_bound(all, place) - all.begin();
    return array(places);
  }
};

Neighbours found_by_selection(const Array& values, const KnownPlaces& places) {
  const Array found = elements_of_sorted(values, places.all);
  return {take(found, places.among_all(places.low), -1), take(found, places.among_all(places.high), -1),
          astype(array(places.part), values.dtype()), isnan(max(values, Axes(-1), true))};
}

// Throws NumPy's error if the values are known; values traced or computed are clamped as in JAX.
void check_parts(const Array& x, const Array& q, double whole) {
  check_usable(x);
  check_usable(q);
  const auto known = detail::is_unknown(x) ? std::nullopt : known_values(q);
  if (!known) return;
  const auto wrong =
      std::ranges::find_if_not(*known, [&](double part) { return part >= 0 && part <= whole; });
  if (wrong == known->end()) return;
  std::ostringstream text;
  text << call_text() << ": " << *wrong << " is no part of the elements, which goes from 0 to " << whole;
  throw ArgumentError(text.str());
}

// Selects where the places are known and few, else sorts. Selections in short lines compare, one place after
// the other; in long ones they count.
Neighbours found_in(const Array& values, const Array& q, const Question& question) {
  constexpr std::int64_t short_line = 1 << 12;
  const std::int64_t most_selected = values.shape().back() < short_line ? 1 : 4;
  const auto known = detail::is_unknown(q) || q.size() > most_selected ? std::nullopt : known_values(q);
  const bool are_numbers =
      known && std::ranges::none_of(*known, [](double part) { return std::isnan(part); });
  if (are_numbers && !question.passes_over_nan && !is_half(values.dtype())) {
    std::vector<double> parts = *known;
    for (double& part : parts) part /= question.whole;
    return found_by_selection(values, KnownPlaces(question.method, values.shape().back(), parts));
  }
  const Array parts = reshape(cast_to(q, float64), Shape{q.size()});
  return found_by_sorting(values, question.whole == 1 ? parts : parts / question.whole, question);
}

Array quantiles(const Array& x, const Array& q, const Axes& axes, const Question& question, bool keepdims) {
  check_usable(x);
  check_usable(q);
  if (is_complex(x.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  const auto dims = checked_dims(axes.values, x.ndim(), true);
  const Array inexact = cast_to(x, to_inexact(x.dtype()));
  const bool is_of_all = dims.size() == x.shape().size();
  const Array values = is_of_all ? in_any_order(inexact) : reduced_last(inexact, dims);
  if (values.shape().back() == 0)
    throw ShapeError(call_text() + ": a quantile of no elements (shape " + to_string(x.shape()) +
                     ") is not defined");
  Array result = moveaxis(between(found_in(values, q, question)), -1, 0);
  Shape extents = q.shape();
  for (int d = 0; d < x.ndim(); ++d) {
    const bool is_reduced = std::binary_search(dims.begin(), dims.end(), d);
    if (!is_reduced || keepdims) extents.push_back(is_reduced ? 1 : x.shape()[d]);
  }
  return reshape(result, extents);
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
  return quantiles(x.array, q.array, axes, {method, false, 100}, keepdims);
}
Array nanquantile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("nanquantile", x.where);
  check_parts(x.array, q.array, 1);
  return quantiles(x.array, q.array, axes, {method, true}, keepdims);
}
Array nanpercentile(const Operand& x, const Operand& q, Axes axes, const std::string& method, bool keepdims) {
  const Call call("nanpercentile", x.where);
  check_parts(x.array, q.array, 100);
  return quantiles(x.array, q.array, axes, {method, true, 100}, keepdims);
}
Array nanmedian(const Operand& x, Axes axes, bool keepdims) {
  const Call call("nanmedian", x.where);
  return quantiles(x.array, 0.5, axes, {"linear", true}, keepdims);
}

}  // namespace tessera
