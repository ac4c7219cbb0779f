/// @file
/// Functions whose result size depends on values: masked selection, nonzero elements, distinct values.
///
/// **Sizes.** Outside a trace the values are read: all ranks agree on one number (collective over all ranks:
/// computes the mask), and the result has exactly that many elements. While a function is traced (jit, vmap,
/// grad of them) there are no values: give the size, as in jax.numpy, `{.size = n}`. Longer results are
/// truncated, shorter ones padded with `fill_value`. With a size no value is read: not collective, records.
///
/// **Sharding.** The result is split as the operand's dim is, in blocks of its own size, which may be uneven
/// or empty. Several dims are first flattened to one, in row-major order (see reshape).
///
/// **Communication.** Ranks send the selected elements directly to the owner in the result, and one number
/// per rank; nothing is gathered. Gradients take the same path back.
///
/// **Errors.** ArgumentError in a trace without a size and for a negative size, ShapeError as stated. All are
/// raised on every rank.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// The size of a result that depends on values.
struct SizedOptions {
  /// Extent of the dim that depends on values; none: the values are read.
  std::optional<std::int64_t> size = {};
  std::optional<double> fill_value =
      {};  ///< pads a shorter result; none: 0, or the smallest value for unique and sets
};

/// @name Elements selected by a mask
/// @{

/// The indices of nonzero elements, in row-major order: one index array per dim (numpy.nonzero), int32 (int64
/// past 2^31 elements). A scalar counts as one element.
[[nodiscard]] std::vector<Array> nonzero(const Operand& x, SizedOptions options = {});
/// The indices in the flattened array.
[[nodiscard]] Array flatnonzero(const Operand& x, SizedOptions options = {});
/// The indices as rows: (count, number of dims).
[[nodiscard]] Array argwhere(const Operand& x, SizedOptions options = {});
/// The slices of x along an axis for which the 1-D condition is true (numpy.compress). A shorter condition
/// omits the rest of the axis; ShapeError for a longer one.
[[nodiscard]] Array compress(const Operand& condition, const Operand& x, int axis, SizedOptions options = {});
/// Selected elements of the flattened array.
[[nodiscard]] Array compress(const Operand& condition, const Operand& x, SizedOptions options = {});
/// The elements of x for which the condition, of x's shape, is nonzero: 1-D (numpy.extract), as x(condition).
[[nodiscard]] Array extract(const Operand& condition, const Operand& x, SizedOptions options = {});
/// @}

/// @name Distinct values
/// Sorted; NaNs are equal to each other, and last. For real numbers, integers and bool.
/// @{

/// The distinct values.
[[nodiscard]] Array unique(const Operand& x, SizedOptions options = {});
/// The result of unique_all.
struct UniqueAll {
  Array values;   ///< the distinct values, sorted
  Array indices;  ///< the first index of each in the flattened array
  Array inverse;  ///< x's shape: index of each element's value
  Array counts;   ///< the number of occurrences of each
};
/// The distinct values with their indices and counts (array API's unique_all).
UniqueAll unique_all(const Operand& x, SizedOptions options = {});
/// {values, counts}.
[[nodiscard]] std::pair<Array, Array> unique_counts(const Operand& x, SizedOptions options = {});
/// {values, inverse}.
[[nodiscard]] std::pair<Array, Array> unique_inverse(const Operand& x, SizedOptions options = {});
/// @}

/// @name Sets
/// Operations on the elements of arrays of any shape; the results are 1-D, sorted and without repetition.
/// @{

/// Values in one or both.
[[nodiscard]] Array union1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in both.
[[nodiscard]] Array intersect1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in a and not in b.
[[nodiscard]] Array setdiff1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in exactly one.
[[nodiscard]] Array setxor1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Whether each element of x is in `test`, or is not if `invert`: bool, of x's shape. NaN is never in `test`.
/// Records: its size is known.
[[nodiscard]] Array isin(const Operand& x, const Operand& test, bool invert = false);
/// isin of the flattened x (NumPy's former name).
[[nodiscard]] Array in1d(const Operand& x, const Operand& test, bool invert = false);
/// @}

}  // namespace tessera
