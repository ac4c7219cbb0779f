/// @file
/// Reductions, and other functions along axes: arg-reductions, softmax, cumulative sums, order statistics.
///
/// **Shapes.** A reduction runs over all axes unless some are named; reduced axes are removed, or kept with
/// extent 1 if keepdims.
///
/// **Sharding.** The other dims keep their splits. Over a split axis each rank reduces its own block and one
/// all-reduce combines the results; if the result should be split it is a reduce-scatter, and sums of sums
/// are combined once. Over an unsplit axis nothing moves. No operand is gathered. Uneven and empty blocks are
/// exact.
///
/// **Communication.** Not collective: every function here records.
///
/// **Numbers.** Sums are pairwise on each rank (error of order eps log n, not eps n); over ranks they are
/// added in an order that depends only on the number of ranks, so that a program gives the same bits in every
/// run. NaN in an operand gives NaN, also in max and min. bfloat16 and float16 are added in float32, over
/// ranks too, and the result is rounded once.
///
/// **Empty.** Without elements sum is 0, prod 1, any false, all true, count_nonzero 0, mean, var, std and
/// average NaN; max, min, ptp, argmax, argmin, median, logsumexp and softmax are ShapeErrors.
///
/// **Errors.** IndexError for an axis that is out of range or named twice, DtypeError for complex operands if
/// an order is needed, ShapeError as stated. All are raised on every rank when recorded.
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
/// The sum of x converted to a dtype, which is the result's.
[[nodiscard]] Array sum(const Operand& x, Axes axes, Dtype dtype, bool keepdims = false);
/// The product; dtypes as in sum. Its gradient is correct at zeros too.
[[nodiscard]] Array prod(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The product of x converted to a dtype, which is the result's.
[[nodiscard]] Array prod(const Operand& x, Axes axes, Dtype dtype, bool keepdims = false);
/// The mean; integers become float32.
[[nodiscard]] Array mean(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The mean square distance from the mean, divided by n (NumPy's ddof = 0). Computed in two passes, so that a
/// large mean costs no accuracy: two reductions.
[[nodiscard]] Array var(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Divided by n - correction: 1 makes the estimate from a sample unbiased (NumPy's ddof). NaN or infinite if
/// n <= correction.
[[nodiscard]] Array var(const Operand& x, Axes axes, bool keepdims, double correction);
/// sqrt(var(x)). In programs with `using namespace tessera` write stddev, or tessera::std.
[[nodiscard]] Array std(const Operand& x, Axes axes = {}, bool keepdims = false);
/// sqrt(var(x)) with its correction.
[[nodiscard]] Array std(const Operand& x, Axes axes, bool keepdims, double correction);
/// std under a name that works with `using namespace tessera`.
[[nodiscard]] inline Array stddev(const Operand& x, Axes axes = {}, bool keepdims = false) {
  return std(x, std::move(axes), keepdims);
}
[[nodiscard]] inline Array stddev(const Operand& x, Axes axes, bool keepdims, double correction) {
  return std(x, std::move(axes), keepdims, correction);
}
/// The largest element; NaN if there is one. Ties share the gradient.
[[nodiscard]] Array max(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The smallest element; NaN if there is one. Ties share the gradient.
[[nodiscard]] Array min(const Operand& x, Axes axes = {}, bool keepdims = false);
/// max(x) - min(x).
[[nodiscard]] Array ptp(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Whether all elements are nonzero.
[[nodiscard]] Array all(const Operand& x, Axes axes = {}, bool keepdims = false);
/// Whether any element is nonzero.
[[nodiscard]] Array any(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The number of nonzero elements (NaN is nonzero): int32.
[[nodiscard]] Array count_nonzero(const Operand& x, Axes axes = {}, bool keepdims = false);
/// log(sum(exp(x))) without overflow: the maximum is subtracted first. Two reductions.
[[nodiscard]] Array logsumexp(const Operand& x, Axes axes = {}, bool keepdims = false);
/// The middle of the sorted elements, or the mean of the two middle ones; NaN if there is one. Sorts, also
/// across ranks (see sort). Without an axis: over all elements.
[[nodiscard]] Array median(const Operand& x);
[[nodiscard]] Array median(const Operand& x, int axis, bool keepdims = false);
/// sum(x w) / sum(w); the weights have x's shape, or that of the axes, in their order. ShapeError for others;
/// without axes the weights broadcast to x.
[[nodiscard]] Array average(const Operand& x, const Operand& weights, Axes axes = {}, bool keepdims = false);
/// The index of the largest element, the first of ties; of the first NaN if there is one. int32 (int64 past
/// 2^31 elements). Without an axis: in the flattened array. A split axis costs two all-reduces of the
/// result's size.
[[nodiscard]] Array argmax(const Operand& x);
[[nodiscard]] Array argmax(const Operand& x, int axis, bool keepdims = false);
/// The index of the smallest element; otherwise as argmax.
[[nodiscard]] Array argmin(const Operand& x);
[[nodiscard]] Array argmin(const Operand& x, int axis, bool keepdims = false);
/// @}

/// Options of cumulative functions.
struct CumulativeOptions {
  std::optional<Dtype> dtype = {};  ///< x is converted to it first; none: as in sum
  bool include_initial = false;     ///< prepends the value of no elements: one more element (array API)
  bool reverse = false;             ///< runs from the end of the axis
};

/// @name Along one axis
/// The result has x's shape and sharding.
/// @{

/// exp(x) / sum(exp(x)) along the axis, without overflow. A split axis costs two all-reduces (maximum,
/// sum).
[[nodiscard]] Array softmax(const Operand& x, int axis = -1);
/// log(softmax(x)), without loss of digits.
[[nodiscard]] Array log_softmax(const Operand& x, int axis = -1);
/// Sums from the start of the axis up to each element; dtypes as in sum. Along a split axis ranks exchange
/// the totals of their blocks, slices of extent 1. Floats are not added one by one: a sum's last digits may
/// differ from a loop's, and sums of numbers >= 0 may decrease by a rounding. ReproducibleScope: one by one.
[[nodiscard]] Array cumsum(const Operand& x, int axis);
[[nodiscard]] Array cumsum(const Operand& x, int axis, CumulativeOptions options);
/// Over all elements in row-major order: 1-D.
[[nodiscard]] Array cumsum(const Operand& x);
/// Products from the start of the axis up to each element; otherwise as cumsum.
[[nodiscard]] Array cumprod(const Operand& x, int axis);
[[nodiscard]] Array cumprod(const Operand& x, int axis, CumulativeOptions options);
/// Over all elements in row-major order: 1-D.
[[nodiscard]] Array cumprod(const Operand& x);
/// The largest element from the start of the axis up to each; NaN from the first NaN on. A gradient goes to
/// the first of ties. For real numbers; otherwise as cumsum.
[[nodiscard]] Array cummax(const Operand& x, int axis, bool reverse = false);
/// The smallest element; otherwise as cummax.
[[nodiscard]] Array cummin(const Operand& x, int axis, bool reverse = false);
/// log(cumsum(exp(x))) without overflow. For real numbers; integers become float32.
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
