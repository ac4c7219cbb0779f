/// @file
/// Statistics as in numpy: histograms, quantiles, covariances, and reductions that ignore NaN.
///
/// **Dtypes.** Integers become float32, as in mean. **Sharding.** Remaining dims keep their splits.
///
/// **Communication.** Not collective: every function here records. For a split operand each rank counts or
/// reduces its block, and one all-reduce of the result's size combines them; few quantiles at known
/// fractions are selected by counts of digits, which ranks add up; others sort (see sort).
///
/// **Errors.** Those of reductions; ArgumentError and ShapeError as stated. All are raised on every rank when
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
/// NaN and values outside of the range are not counted; the last bin includes its right edge.
/// @{

/// Options of histograms.
struct HistogramOptions {
  int bins = 10;                                        ///< equal bins in each dim
  std::optional<std::pair<double, double>> range = {};  ///< ends; none: the smallest and largest value
  Array weights = {};                                   ///< x's shape: weight of each value; none: 1
  bool density = false;  ///< divided by the sum and the bins' widths, so that the integral is 1
};
/// {counts, edges}: the number of elements of x in each of equal bins. Counts are int32, with weights they
/// have their dtype, densities are floating. ArgumentError for less than one bin and for an invalid range.
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, HistogramOptions options = {});
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, int bins);
/// With bins between given ascending edges: 1-D, one more than bins.
[[nodiscard]] std::pair<Array, Array> histogram(const Operand& x, const Operand& edges,
                                                HistogramOptions options = {});
/// The edges of histogram's bins.
[[nodiscard]] Array histogram_bin_edges(const Operand& x, HistogramOptions options = {});
/// The result of histogram2d.
struct Histogram2d {
  Array counts;   ///< (bins of x, bins of y)
  Array x_edges;  ///< edges of the bins along the rows
  Array y_edges;  ///< edges of the bins along the columns
};
/// The histogram of points (x[i], y[i]).
Histogram2d histogram2d(const Operand& x, const Operand& y, HistogramOptions options = {});
/// {counts, edges of each dim} for points that are the rows of `sample`, (n, dims); `bins` and `ranges` for
/// each dim, or by default those of the options.
std::pair<Array, std::vector<Array>> histogramdd(const Operand& sample, HistogramOptions options = {},
                                                 std::vector<int> bins = {},
                                                 std::vector<std::pair<double, double>> ranges = {});
/// The number of occurrences of each of 0, 1, ..., length - 1 in a 1-D array of integers, or the sum of their
/// weights; other values are ignored (jax.numpy.bincount with a length).
[[nodiscard]] Array bincount(const Operand& x, std::int64_t length);
/// The length follows from the largest element: reads it, collective over all ranks; ArgumentError in a
/// trace.
[[nodiscard]] Array bincount(const Operand& x);
/// The sums of the weights per value.
[[nodiscard]] Array bincount(const Operand& x, const Operand& weights, std::int64_t length);
/// The bin index of each element: i for edges[i-1] <= x < edges[i], with `right` for edges[i-1] < x <=
/// edges[i]. Edges may ascend or descend. int32.
[[nodiscard]] Array digitize(const Operand& x, const Operand& edges, bool right = false);
/// @}

/// @name Quantiles
/// @{

/// The value below which a fraction q of the sorted elements is: for an array of q the result has its dims in
/// front. method: numpy's "linear" (the default), "lower", "higher", "midpoint", "nearest", "inverted_cdf",
/// "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
/// "median_unbiased" or "normal_unbiased". NaN if there is one. Without axes: over all elements.
/// ArgumentError for another method, ShapeError for no elements.
[[nodiscard]] Array quantile(const Operand& x, const Operand& q, Axes axes = {},
                             const std::string& method = "linear", bool keepdims = false);
/// The median over several axes; otherwise as over one.
[[nodiscard]] Array median(const Operand& x, std::vector<int> axes, bool keepdims = false);
/// quantile(x, q / 100).
[[nodiscard]] Array percentile(const Operand& x, const Operand& q, Axes axes = {},
                               const std::string& method = "linear", bool keepdims = false);
/// quantile of the elements that are not NaN; NaN if there are none.
[[nodiscard]] Array nanquantile(const Operand& x, const Operand& q, Axes axes = {},
                                const std::string& method = "linear", bool keepdims = false);
/// nanquantile(x, q / 100).
[[nodiscard]] Array nanpercentile(const Operand& x, const Operand& q, Axes axes = {},
                                  const std::string& method = "linear", bool keepdims = false);
/// nanquantile(x, 0.5).
[[nodiscard]] Array nanmedian(const Operand& x, Axes axes = {}, bool keepdims = false);
/// @}

/// @name Without NaN
/// Reductions over the elements that are not NaN. If there are none, the sum is 0, the product 1, and the
/// others NaN.
/// @{

/// The sum.
[[nodiscard]] Array nansum(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The product.
[[nodiscard]] Array nanprod(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The mean.
[[nodiscard]] Array nanmean(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The variance, divided by the number of elements minus the correction.
[[nodiscard]] Array nanvar(const Operand& x, Axes axes = {}, bool keepdims = false, double correction = 0);
/// sqrt(nanvar(x)).
[[nodiscard]] Array nanstd(const Operand& x, Axes axes = {}, bool keepdims = false, double correction = 0);
/// The largest.
[[nodiscard]] Array nanmax(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The smallest.
[[nodiscard]] Array nanmin(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The index of the largest element; -1 if all are NaN, as in JAX.
[[nodiscard]] Array nanargmax(const Operand& x);
[[nodiscard]] Array nanargmax(const Operand& x, int axis, bool keepdims = false);
/// The index of the smallest element; -1 if all are NaN.
[[nodiscard]] Array nanargmin(const Operand& x);
[[nodiscard]] Array nanargmin(const Operand& x, int axis, bool keepdims = false);
/// Cumulative sums that ignore NaN.
[[nodiscard]] Array nancumsum(const Operand& x, int axis);
/// Cumulative products that ignore NaN.
[[nodiscard]] Array nancumprod(const Operand& x, int axis);
/// @}

/// @name Together
/// @{

/// The covariances of the rows of x (variables), over its columns (observations); of columns unless `rowvar`.
/// Divided by n - correction. Split observations take one all-reduce of the product.
[[nodiscard]] Array cov(const Operand& x, bool rowvar = true, double correction = 1);
/// cov divided by the standard deviations.
[[nodiscard]] Array corrcoef(const Operand& x, bool rowvar = true);
/// The piecewise linear function through the points (xp[i], fp[i]), evaluated at x; xp ascends. Beyond its
/// ends fp's first and last value, or `left` and `right`. ShapeError unless xp and fp are 1-D and of one
/// size.
[[nodiscard]] Array interp(const Operand& x, const Operand& xp, const Operand& fp,
                           std::optional<double> left = {}, std::optional<double> right = {});
/// @}

}  // namespace tessera
