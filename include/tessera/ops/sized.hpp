/// @file
/// Functions whose result is as large as values say: what a mask chooses, what is not 0, what is different.
///
/// **Sizes.** Outside a trace the values are looked at: one number is agreed by all ranks (collective over
/// all ranks: computes the mask), and the result has exactly that many elements. While a function is traced
/// (jit, vmap, grad of them) there are no values: say the size, as in jax.numpy, `{.size = n}`. What is more
/// is cut off; what is missing is `fill_value`. With a size nothing is looked at: not collective, records.
///
/// **Sharding.** The result is split as the operand's dim is, in blocks of its own size, which may be uneven
/// or empty. Several dims are first seen as one, in row-major order (see reshape).
///
/// **Communication.** Ranks send each other what is chosen and belongs into another's block, and a number per
/// rank; nothing is gathered. Gradients go back the same way.
///
/// **Errors.** ArgumentError in a trace without a size and for a negative size, ShapeError as said. All are
/// raised on every rank.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// How large a result is whose size depends on values.
struct SizedOptions {
  std::optional<std::int64_t> size = {};  ///< along the dim that depends on values; none: looks at them
  std::optional<double> fill_value =
      {};  ///< what fills it up; none: 0, of unique and sets the smallest value
};

/// @name What a mask chooses
/// @{

/// The places of what is not 0, in row-major order: an index array per dim (numpy.nonzero), int32 (int64 past
/// 2^31 elements). A scalar counts as one element.
[[nodiscard]] std::vector<Array> nonzero(const Operand& x, SizedOptions options = {});
/// The places in the flattened array.
[[nodiscard]] Array flatnonzero(const Operand& x, SizedOptions options = {});
/// The places as rows: (how many, number of dims).
[[nodiscard]] Array argwhere(const Operand& x, SizedOptions options = {});
/// The slices of x along an axis where the 1-D condition is true (numpy.compress). A condition that is
/// shorter than the axis leaves out the rest; ShapeError for a longer one.
[[nodiscard]] Array compress(const Operand& condition, const Operand& x, int axis, SizedOptions options = {});
/// Elements of the flattened array.
[[nodiscard]] Array compress(const Operand& condition, const Operand& x, SizedOptions options = {});
/// The elements of x where the condition, of x's shape, is not 0: 1-D (numpy.extract), as x(condition).
[[nodiscard]] Array extract(const Operand& condition, const Operand& x, SizedOptions options = {});
/// @}

/// @name What is different
/// Sorted; NaN are equal to each other, and last. Of real numbers, integers and bool.
/// @{

/// The different values.
[[nodiscard]] Array unique(const Operand& x, SizedOptions options = {});
/// The result of unique_all.
struct UniqueAll {
  Array values;   ///< the different values, sorted
  Array indices;  ///< where each stands first in the flattened array
  Array inverse;  ///< of x's shape: which of the values stands there
  Array counts;   ///< how often each stands
};
/// The different values with their places and numbers (array API's unique_all).
UniqueAll unique_all(const Operand& x, SizedOptions options = {});
/// {values, counts}.
[[nodiscard]] std::pair<Array, Array> unique_counts(const Operand& x, SizedOptions options = {});
/// {values, inverse}.
[[nodiscard]] std::pair<Array, Array> unique_inverse(const Operand& x, SizedOptions options = {});
/// @}

/// @name Sets
/// Of the elements of arrays of any shape; the results are 1-D, sorted and without repetition.
/// @{

/// Values in one or both.
[[nodiscard]] Array union1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in both.
[[nodiscard]] Array intersect1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in a and not in b.
[[nodiscard]] Array setdiff1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Values in exactly one.
[[nodiscard]] Array setxor1d(const Operand& a, const Operand& b, SizedOptions options = {});
/// Whether each element of x is among those of `test`, or is not if `invert`: bool, of x's shape. NaN is
/// never. Records: its size is known.
[[nodiscard]] Array isin(const Operand& x, const Operand& test, bool invert = false);
/// isin of the flattened x (NumPy's former name).
[[nodiscard]] Array in1d(const Operand& x, const Operand& test, bool invert = false);
/// @}

}  // namespace tessera
