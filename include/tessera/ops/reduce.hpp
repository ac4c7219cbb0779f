/// @file
/// Reductions, and what else runs along axes: arg-reductions, softmax, cumulative sums, order statistics.
///
/// **Shapes.** A reduction runs over all axes unless some are named; those disappear, or stay with extent 1
/// if keepdims.
///
/// **Sharding.** The other dims stay split as they are. Over a split axis each rank reduces its own block
/// and one all-reduce of the result adds them up; where the result is wanted split it is a reduce-scatter,
/// and sums of sums are added up once. Over an unsplit axis nothing moves. No operand is gathered. Uneven
/// and empty blocks count for what they hold.
///
/// **Communication.** Not collective: every function here records.
///
/// **Numbers.** Sums are pairwise in each rank (error of order eps log n, not eps n); over ranks they are
/// added in an order that depends on the number of ranks alone, so that a program gives the same bits when
/// it is run again. NaN in an operand gives NaN, of max and min too. bfloat16 and float16 are added up in
/// float32, over ranks too, and the result is rounded once.
///
/// **Empty.** Of no elements sum is 0, prod 1, any false, all true, count_nonzero 0, mean, var, std and
/// average NaN; max, min, ptp, argmax, argmin, median, logsumexp and softmax are ShapeErrors.
///
/// **Errors.** IndexError for an axis that is out of range or named twice, DtypeError for complex operands
/// where an order is needed, ShapeError as said. All are raised on every rank when recorded.
#pragma once
#include <concepts>
#include <optional>
#include <utility>

#include <tessera/array.hpp>
#include <tessera/ops/axes.hpp>

namespace tessera {

/// @name Reductions
/// @{

/// The sum. bool counts (int32); integers of 8 and 16 bits are summed in 32; they wrap around.
[[nodiscard]] Array sum(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The sum of x converted to a dtype, which the result has.
[[nodiscard]] Array sum(const Operand& x, Axes axes, Dtype dtype, bool keepdims = false);
/// The product; dtypes as those of sum. Its gradient is right at zeros too.
[[nodiscard]] Array prod(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The product of x converted to a dtype, which the result has.
[[nodiscard]] Array prod(const Operand& x, Axes axes, Dtype dtype, bool keepdims = false);
/// The mean; integers become float32.
[[nodiscard]] Array mean(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The mean square distance from the mean, divided by n (NumPy's ddof = 0). Two passes, so that a large
/// mean costs no accuracy: two reductions.
[[nodiscard]] Array var(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Divided by n - correction: 1 makes the estimate from a sample unbiased (NumPy's ddof). NaN or infinite
/// where n <= correction.
[[nodiscard]] Array var(const Operand& x, Axes axes, bool keepdims, double correction);
/// sqrt(var(x)). In programs that say `using namespace tessera` write stddev, or tessera::std.
[[nodiscard]] Array std(const Operand& x, Axes axes = {}, bool keepdims = false);
/// sqrt(var(x)) with its correction.
[[nodiscard]] Array std(const Operand& x, Axes axes, bool keepdims, double correction);
/// std under a name that programs which say `using namespace tessera` can write.
[[nodiscard]] inline Array stddev(const Operand& x, Axes axes = {}, bool keepdims = false) {
  return std(x, std::move(axes), keepdims);
}
[[nodiscard]] inline Array stddev(const Operand& x, Axes axes, bool keepdims, double correction) {
  return std(x, std::move(axes), keepdims, correction);
}
/// The largest element; NaN if there is one. Equal ones share the gradient.
[[nodiscard]] Array max(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The smallest element; NaN if there is one. Equal ones share the gradient.
[[nodiscard]] Array min(const Operand& x, Axes axes = {}, bool keepdims = false);
/// max(x) - min(x).
[[nodiscard]] Array ptp(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Whether all elements are not 0.
[[nodiscard]] Array all(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Whether an element is not 0.
[[nodiscard]] Array any(const Operand& x, Axes axes = {}, bool keepdims = false);
/// How many elements are not 0 (NaN is not): int32.
[[nodiscard]] Array count_nonzero(const Operand& x, Axes axes = {}, bool keepdims = false);
/// log(sum(exp(x))) without overflow: the maximum is taken out first. Two reductions.
[[nodiscard]] Array logsumexp(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The middle of the sorted elements, or the mean of the two in the middle; NaN if there is one. Sorts,
/// also across ranks (see sort). Without an axis: of all elements.
[[nodiscard]] Array median(const Operand& x);
[[nodiscard]] Array median(const Operand& x, int axis, bool keepdims = false);
/// sum(x w) / sum(w); the weights broadcast to x.
[[nodiscard]] Array average(const Operand& x, const Operand& weights, Axes axes = {}, bool keepdims = false);
/// The place of the largest element, of the first of equal ones; of the first NaN if there is one. int32
/// (int64 past 2^31 elements). Without an axis: in the flattened array. A split axis costs two all-reduces
/// of the result's size.
[[nodiscard]] Array argmax(const Operand& x);
[[nodiscard]] Array argmax(const Operand& x, int axis, bool keepdims = false);
/// The place of the smallest element; otherwise as argmax.
[[nodiscard]] Array argmin(const Operand& x);
[[nodiscard]] Array argmin(const Operand& x, int axis, bool keepdims = false);
/// @}

/// How a cumulative function runs along its axis.
struct CumulativeOptions {
  std::optional<Dtype> dtype = {};  ///< what x is converted to first; none: as sum does
  bool include_initial = false;     ///< the value of no elements comes first: an extent more (array API)
  bool reverse = false;             ///< from the end of the axis
};

/// @name Along one axis
/// The result has x's shape and sharding.
/// @{

/// exp(x) / sum(exp(x)) along the axis, without overflow. A split axis costs two all-reduces (maximum,
/// sum).
[[nodiscard]] Array softmax(const Operand& x, int axis = -1);
/// log(softmax(x)), without its loss of digits.
[[nodiscard]] Array log_softmax(const Operand& x, int axis = -1);
/// Sums from the start of the axis up to each element; dtypes as those of sum. Of a split axis ranks pass
/// on the totals of their blocks, slices of extent 1.
[[nodiscard]] Array cumsum(const Operand& x, int axis);
[[nodiscard]] Array cumsum(const Operand& x, int axis, CumulativeOptions options);
/// Over all elements in row-major order: 1-D.
[[nodiscard]] Array cumsum(const Operand& x);
/// Products from the start of the axis up to each element; otherwise as cumsum.
[[nodiscard]] Array cumprod(const Operand& x, int axis);
[[nodiscard]] Array cumprod(const Operand& x, int axis, CumulativeOptions options);
/// Over all elements in row-major order: 1-D.
[[nodiscard]] Array cumprod(const Operand& x);
/// The largest element from the start of the axis up to each; once NaN, NaN. A gradient goes to the first
/// of equal ones. Of real numbers; otherwise as cumsum.
[[nodiscard]] Array cummax(const Operand& x, int axis, bool reverse = false);
/// The smallest element; otherwise as cummax.
[[nodiscard]] Array cummin(const Operand& x, int axis, bool reverse = false);
/// log(cumsum(exp(x))) without overflow. Of real numbers; integers become float32.
[[nodiscard]] Array cumlogsumexp(const Operand& x, int axis, bool reverse = false);
/// @}

/// max(a, b) of two arrays does not compile: max(x, axis) reduces.
template <std::same_as<Array> A> void max(const Operand&, const A&) {
  static_assert(detail::never<A>,
                "max(x, axis) reduces one array: the larger elements of two are maximum(a, b)");
}
/// min(a, b) of two arrays does not compile either.
template <std::same_as<Array> A> void min(const Operand&, const A&) {
  static_assert(detail::never<A>,
                "min(x, axis) reduces one array: the smaller elements of two are minimum(a, b)");
}

}  // namespace tessera
