// Histograms: each rank counts its values between the edges. Weights are added to the bins that a search of
// the edges finds; a scatter-add of a long list into few bins communicates sums, not values
// (ops/index/update/at.cpp).
#include <tessera/ops/statistics.hpp>

#include <algorithm>

#include "kernels/sort/sort.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/known.hpp"

namespace tessera {
namespace {

Array flat(const Array& x) { return x.ndim() == 1 ? x : reshape(x, Shape{x.size()}); }
Array inexact(const Array& x) { return cast_to(x, to_inexact(x.dtype())); }

void check_bins(int bins) {
  if (bins < 1)
    throw ArgumentError(call_text() + ": " + std::to_string(bins) + " bins; there must be at least one");
}

// Edges of bins of equal width: between given ends, or between the extrema of the values.
Array equal_edges(const Array& x, int bins, const std::optional<std::pair<double, double>>& range) {
  check_bins(bins);
  const Dtype dtype = x.dtype();
  if (range) {
    auto [lo, hi] = *range;
    if (!(lo <= hi) || !std::isfinite(hi - lo))
      throw ArgumentError(call_text() + ": the range (" + std::to_string(lo) + ", " + std::to_string(hi) +
                          ") must be finite and ascend");
    if (lo == hi) lo -= 0.5, hi += 0.5;
    return linspace(lo, hi, bins + 1, dtype);
  }
  if (x.size() == 0) return linspace(0, 1, bins + 1, dtype);
  const Array lo = min(x), hi = max(x), widen = where(lo == hi, 0.5, 0.0);
  const Array first = lo - widen, last = hi + widen;
  const Array steps = astype(arange(bins + 1), dtype);
  return where(arange(bins + 1) == bins, last, first + steps * ((last - first) / bins));
}

// The bin of each value; the number of bins for values in none, which a scatter drops.
Array bin_of(const Array& x, const Array& edges) {
  const auto bins = edges.size() - 1;
  const Array at = searchsorted(edges, x, "right") - 1;
  const Array in_last = x == edges(-1);
  const Array outside = (x < edges(0)) | (x > edges(-1)) | isnan(x);
  return where(outside, bins, where(in_last, bins - 1, at));
}

// (B.. edges), (B.. values) -> (B.. edges): the number of values from each edge to the next; the last element
// counts values equal to the last edge. A rank counts its own values, and all counts are summed.
const OpDef count_bins_op{
    .name = "count_bins",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> {
      return {{in[0].shape, int32}};
    },
    .sharding = Rule("B.. e, B.. N.. -> B.. e | sum N | whole e"),
    .runs = Kernel{[](const KernelArgs& a) {
      const Tile &edges = a.in[0], &values = a.in[1];
      const auto count = edges.box.back().size(), rows = edges.elements() / count,
                 per_row = values.elements() / std::max<std::int64_t>(rows, 1);
      const auto item = static_cast<std::int64_t>(itemsize(edges.dtype));
      for (std::int64_t r = 0; r < rows; ++r)
        kernels::count_bins(edges.dtype, edges.data + r * count * item, count,
                            values.data + r * per_row * item, per_row,
                            a.out[0].as<std::int32_t>() + r * count);
    }},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(2); },  // a step function
    .batch = batch_leading,
    .parts = Parts::all_dims,
};
const Registered registered_count(count_bins_op);

Array counts_between(const Array& x, const Array& edges) {
  const Array counts = record(count_bins_op, no_params(), {edges, x});
  const auto bins = edges.size() - 1;
  return counts(slice(0, bins)) + where(arange(bins) == bins - 1, counts(-1), 0);  // the last bin is closed
}

Array counted(std::int64_t bins, const Array& bin, const Array& weights) {
  return zeros({bins}, weights.dtype()).at(bin).add(weights);
}

Array weights_for(const Array& x, const Array& weights) {
  if (!weights.node()) return weights;
  check_usable(weights);
  if (weights.shape() != x.shape())
    throw ShapeError(call_text() + ": the weights have shape " + to_string(weights.shape()) +
                     ", the values " + to_string(x.shape()) + "; there must be one for each");
  return flat(weights);
}

Array widths_of(const Array& edges) { return edges(slice(1, None)) - edges(slice(None, -1)); }

std::pair<Array, Array> histogram_between(const Array& x, const Array& edges,
                                          const HistogramOptions& options) {
  const Array counts = options.weights.node() ? counted(edges.size() - 1, bin_of(flat(x), edges),
                                                        weights_for(x, options.weights))
                                              : counts_between(x, edges);
  if (!options.density) return {counts, edges};
  const Array parts = astype(counts, edges.dtype());
  return {parts / (sum(parts) * widths_of(edges)), edges};
}

Array values_of(const Operand& x) {
  check_usable(x.array);
  if (is_complex(x.array.dtype())) throw DtypeError(call_text() + ": complex numbers have no order");
  return inexact(x.array);
}

}  // namespace

std::pair<Array, Array> histogram(const Operand& x, HistogramOptions options) {
  const Call call("histogram", x.where);
  const Array values = values_of(x);
  return histogram_between(values, equal_edges(values, options.bins, options.range), options);
}
std::pair<Array, Array> histogram(const Operand& x, const Operand& edges, HistogramOptions options) {
  const Call call("histogram", x.where);
  check_usable(edges.array);
  if (edges.array.ndim() != 1 || edges.array.size() < 2)
    throw ShapeError(call_text() + ": the edges have shape " + to_string(edges.array.shape()) +
                     "; they must be 1-D, and at least two");
  if (const auto known = known_values(edges.array); known && !std::is_sorted(known->begin(), known->end()))
    throw ArgumentError(call_text() +
                        ": the edges descend somewhere; each must be at least the one before it");
  const Array values = values_of(x);
  return histogram_between(values, cast_to(edges.array, values.dtype()), options);
}
std::pair<Array, Array> histogram(const Operand& x, int bins) {
  const Call call("histogram", x.where);
  return histogram(x, HistogramOptions{.bins = bins});
}
Array histogram_bin_edges(const Operand& x, HistogramOptions options) {
  const Call call("histogram_bin_edges", x.where);
  return equal_edges(values_of(x), options.bins, options.range);
}

std::pair<Array, std::vector<Array>> histogramdd(const Operand& sample, HistogramOptions options,
                                                 std::vector<int> bins,
                                                 std::vector<std::pair<double, double>> ranges) {
  const Call call("histogramdd", sample.where);
  const Array points = values_of(sample);
  if (points.ndim() != 2 || points.shape()[1] == 0)
    throw ShapeError(call_text() + ": the sample has shape " + to_string(points.shape()) +
                     "; it must be (points, dims), and have a dim");
  const auto dims = static_cast<std::size_t>(points.shape()[1]);
  if (bins.empty()) bins.assign(dims, options.bins);
  if (ranges.empty() && options.range) ranges.assign(dims, *options.range);
  if (bins.size() != dims || (!ranges.empty() && ranges.size() != dims))
    throw ArgumentError(call_text() + ": " + std::to_string(bins.size()) + " numbers of bins and " +
                        std::to_string(ranges.size()) + " ranges for " + std::to_string(dims) +
                        " dims; give one for each");
  std::vector<Array> edges, places;
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < dims; ++d) {
    const Array column = points(slice(), static_cast<std::int64_t>(d));
    edges.push_back(equal_edges(column, bins[d], ranges.empty() ? std::nullopt : std::optional(ranges[d])));
    places.push_back(bin_of(column, edges[d]));
    extents.push_back(bins[d]);
  }
  const Array n = points(slice(), 0);
  const Array weights = options.weights.node() ? weights_for(n, options.weights) : Array();
  const Shape shape(extents);
  std::vector<IndexPart> parts(places.begin(), places.end());
  const Array counts = weights.node() ? At(zeros(shape, weights.dtype()), parts).add(weights)
                                      : At(zeros(shape, int32), parts).add(ones(n.shape(), int32));
  if (!options.density) return {counts, edges};
  Array density = astype(counts, points.dtype());
  density = density / sum(density);
  for (std::size_t d = 0; d < dims; ++d) {
    std::vector<std::int64_t> aligned(dims, 1);
    aligned[d] = extents[d];
    density = density / reshape(widths_of(edges[d]), Shape(aligned));
  }
  return {density, edges};
}

Histogram2d histogram2d(const Operand& x, const Operand& y, HistogramOptions options) {
  const Call call("histogram2d", x.where);
  check_usable(x.array);
  check_usable(y.array);
  auto [counts, edges] = histogramdd(stack({flat(x.array), flat(y.array)}, 1), std::move(options));
  return {counts, edges[0], edges[1]};
}

Array digitize(const Operand& x, const Operand& edges, bool right) {
  const Call call("digitize", x.where);
  check_usable(x.array);
  check_usable(edges.array);
  if (edges.array.ndim() != 1)
    throw ShapeError(call_text() + ": the edges have shape " + to_string(edges.array.shape()) +
                     "; they must have one dimension");
  const auto n = edges.array.size();
  if (n == 0) return zeros(x.array.shape(), int32);
  const Array up = searchsorted(edges, x, right ? "left" : "right");
  const Array down = n - searchsorted(flip(edges, 0), x, right ? "left" : "right");
  return where(edges.array(0) <= edges.array(-1), up, astype(down, up.dtype()));
}

}  // namespace tessera
