/// @file
/// Selecting elements by index, searching and sorting. Index expressions, x(0, slice()), are in
/// array/index.hpp.
///
/// **Indices** are integers; negative ones count from the end. Indices *out of range* cannot be refused,
/// since they are values and known only when computed. The rule is JAX's: a read is clamped to the first or
/// last element, a write (x.at(...)) is dropped. A plain number out of range, x(5), is an IndexError.
///
/// **Communication.** Not collective: every function here records. Ranks request the elements that they need
/// from each other; an operand is replicated only if that moves fewer bytes.
///
/// **Errors.** IndexError for an axis that is out of range or empty, and for indices that are not integers.
/// All are raised on every rank when recorded.
#pragma once
#include <string>
#include <utility>

#include <tessera/array.hpp>

namespace tessera {

/// The slices of x along an axis selected by the indices, whose dims replace the axis (numpy.take, out of
/// range ones clamped). The gradient adds up repeated ones. The remaining dims of x and the indices' dims
/// keep their splits.
[[nodiscard]] Array take(const Operand& x, const Operand& indices, int axis);
/// The elements at these places of ravel(x), as numpy.take without an axis.
[[nodiscard]] Array take(const Operand& x, const Operand& indices);
/// `mode` handles indices out of range: "clip" clamps them; "wrap" wraps around; "fill" gives NaN, for
/// integers the smallest value (for unsigned ones the largest), for bool true, as JAX; "raise" reads the
/// indices, collective over all ranks, and raises IndexError on every rank, or ArgumentError in a trace,
/// where they have no values. The other three only record. ArgumentError for another mode.
[[nodiscard]] Array take(const Operand& x, const Operand& indices, int axis, const std::string& mode);
/// result[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis; out of range ones are clamped. The other
/// dims broadcast. If both are split along the axis, ranks fetch the elements that their indices select.
[[nodiscard]] Array take_along_axis(const Operand& x, const Operand& indices, int axis);
/// Positions at which the values would be inserted into a sorted 1-D array: before equal elements ("left") or
/// after them ("right"). int32 (int64 past 2^31 elements); NaN goes to the end. Split like the values; a
/// split sorted array costs one all-reduce of the result. ShapeError unless sorted is 1-D, ArgumentError for
/// another side.
[[nodiscard]] Array searchsorted(const Operand& sorted, const Operand& values,
                                 const std::string& side = "left");
/// The same for an array that is sorted in the order `sorter`, as argsort returns it.
[[nodiscard]] Array searchsorted(const Operand& sorted, const Operand& values, const std::string& side,
                                 const Operand& sorter);
/// The order used by sort and argsort.
struct SortOptions {
  bool descending = false;  ///< the largest first, NaN before it
  bool stable = true;       ///< equal elements keep their order; they do in any case
};
/// Sorted along an axis, ascending, NaN last; complex numbers by real, then imaginary part. Stable. Unsplit
/// lines are sorted by their rank; split ones by all ranks of the line together, each of which sends every
/// element at most once. Split like x.
[[nodiscard]] Array sort(const Operand& x, int axis = -1);
[[nodiscard]] Array sort(const Operand& x, int axis, SortOptions options);
/// The indices from which sort takes its elements: int32 (int64 past 2^31). Stable. Its derivative is zero.
[[nodiscard]] Array argsort(const Operand& x, int axis = -1);
[[nodiscard]] Array argsort(const Operand& x, int axis, SortOptions options);
/// The k largest elements of the last axis, in descending order, and their indices; the first of ties, NaN
/// counts as largest (jax.lax.top_k). A split axis sends k candidates per rank. ArgumentError unless 0 <= k
/// <= extent.
[[nodiscard]] std::pair<Array, Array> top_k(const Operand& x, int k);

}  // namespace tessera
