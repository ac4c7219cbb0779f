/// @file
/// Statistics as numpy has them: histograms, quantiles, covariances, and reductions that pass over NaN.
///
/// **Dtypes.** Integers become float32, as in mean. **Sharding.** Dims that stay keep their splits.
///
/// **Communication.** Not collective: every function here records. Of a split operand each rank counts or
/// reduces its block, and one all-reduce of the result's size adds up; quantiles sort (see sort).
///
/// **Errors.** As reductions; ArgumentError and ShapeError as said. All are raised on every rank when
/// recorded.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/axes.hpp>

namespace tessera {

/// @name Histograms
/// NaN and what lies outside of the range are not counted; the last bin contains its right edge.
/// @{

/// Options of histograms beside the values.
struct HistogramOptions {
  int bins = 10;                                        ///< equal bins in each dim
  std::optional<std::pair<double, double>> range = {};  ///< their ends; none: the smallest and largest value
  Array weights = {};                                   ///< of x's shape: what each value counts; nothing: 1
  bool density = false;  ///< divided by the sum and the bins' widths, so that the integral is 1
};
/// {counts, edges}: how many elements of x lie in each of equal bins. Counts are int32, those of weights have
/// their dtype, densities are floating. ArgumentError for less than one bin and for a range that is none.
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, HistogramOptions options = {});
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, int bins);
/// In bins between edges that ascend: 1-D, one more than bins.
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, const Operand& edges,
                                                HistogramOptions options = {});
/// The edges of histogram's bins.
[[nodiscard]] Array histogram_bin_edges(const Operand& x, HistogramOptions options = {});
/// The result of histogram2d.
struct Histogram2d {
  Array counts;   ///< (bins of x, bins of y)
  Array x_edges;  ///< of the rows
  Array y_edges;  ///< of the columns
};
/// The histogram of points (x[i], y[i]).
Histogram2d histogram2d(const Operand& x, const Operand& y, HistogramOptions options = {});
/// {counts, edges of each dim}: of points that are the rows of `sample`, (n, dims); `bins` and `ranges` for
/// each dim, or none for options' ones.
std::pair<Array, std::vector<Array>> histogramdd(const Operand& sample, HistogramOptions options = {},
                                                 std::vector<int> bins = {},
                                                 std::vector<std::pair<double, double>> ranges = {});
/// How often each of 0, 1, ..., length - 1 occurs in a 1-D array of integers, or the sum of their weights;
/// others are left out (jax.numpy.bincount with a length).
[[nodiscard]] Array bincount(const Operand& x, std::int64_t length);
/// As many as the largest element asks for: reads it, collective over all ranks; ArgumentError in a trace.
[[nodiscard]] Array bincount(const Operand& x);
/// The sums of the weights.
[[nodiscard]] Array bincount(const Operand& x, const Operand& weights, std::int64_t length);
/// The bin of each element: i where edges[i-1] <= x < edges[i], with `right` edges[i-1] < x <= edges[i].
/// Edges may ascend or descend. int32.
[[nodiscard]] Array digitize(const Operand& x, const Operand& edges, bool right = false);
/// @}

/// @name Quantiles
/// @{

/// The value below which a part q of the elements lies, sorted: for an array of q the result has its dims in
/// front. method: numpy's "linear" (the default), "lower", "higher", "midpoint", "nearest", "inverted_cdf",
/// "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
/// "median_unbiased" or "normal_unbiased". NaN if there is one. No axes: of all elements. ArgumentError for
/// another method, ShapeError for no elements.
[[nodiscard]] Array quantile(const Operand& x, const Operand& q, Axes axes = {},
                             const std::string& method = "linear", bool keepdims = false);
/// quantile(x, q / 100).
[[nodiscard]] Array percentile(const Operand& x, const Operand& q, Axes axes = {},
                               const std::string& method = "linear", bool keepdims = false);
/// quantile of the elements that are not NaN; NaN of none.
[[nodiscard]] Array nanquantile(const Operand& x, const Operand& q, Axes axes = {},
                                const std::string& method = "linear", bool keepdims = false);
/// nanquantile(x, q / 100).
[[nodiscard]] Array nanpercentile(const Operand& x, const Operand& q, Axes axes = {},
                                  const std::string& method = "linear", bool keepdims = false);
/// nanquantile(x, 0.5).
[[nodiscard]] Array nanmedian(const Operand& x, Axes axes = {}, bool keepdims = false);
/// @}

/// @name Without NaN
/// The reductions of the elements that are not NaN. Of none: 0, 1, and NaN of the others.
/// @{

/// The sum.
[[nodiscard]] Array nansum(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The product.
[[nodiscard]] Array nanprod(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The mean.
[[nodiscard]] Array nanmean(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The variance, divided by their number less the correction.
[[nodiscard]] Array nanvar(const Operand& x, Axes axes = {}, bool keepdims = false, double correction = 0);
/// sqrt(nanvar(x)).
[[nodiscard]] Array nanstd(const Operand& x, Axes axes = {}, bool keepdims = false, double correction = 0);
/// The largest.
[[nodiscard]] Array nanmax(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The smallest.
[[nodiscard]] Array nanmin(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The place of the largest; -1 where all are NaN, as in JAX.
[[nodiscard]] Array nanargmax(const Operand& x);
[[nodiscard]] Array nanargmax(const Operand& x, int axis, bool keepdims = false);
/// The place of the smallest; -1 where all are NaN.
[[nodiscard]] Array nanargmin(const Operand& x);
[[nodiscard]] Array nanargmin(const Operand& x, int axis, bool keepdims = false);
/// Running sums that pass over NaN.
[[nodiscard]] Array nancumsum(const Operand& x, int axis);
/// Running products that pass over NaN.
[[nodiscard]] Array nancumprod(const Operand& x, int axis);
/// @}

/// @name Together
/// @{

/// The covariances of the rows of x (variables), over its columns (observations); of columns unless `rowvar`.
/// Divided by n - correction. Split observations leave a product that one all-reduce adds up.
[[nodiscard]] Array cov(const Operand& x, bool rowvar = true, double correction = 1);
/// cov divided by the standard deviations.
[[nodiscard]] Array corrcoef(const Operand& x, bool rowvar = true);
/// The piecewise linear function through the points (xp[i], fp[i]) at x; xp ascends. Beyond its ends fp's
/// first and last value, or what is given. ShapeError unless xp and fp are 1-D and of one size.
[[nodiscard]] Array interp(const Operand& x, const Operand& xp, const Operand& fp,
                           std::optional<double> left = {}, std::optional<double> right = {});
/// @}

}  // namespace tessera
