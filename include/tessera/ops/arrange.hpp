/// @file
/// More of numpy's functions that arrange elements: joining blocks, rotating, diagonals, selection, sorting
/// by several keys.
///
/// Composed of the functions of ops/reshape.hpp and ops/index.hpp, with their contracts: remaining dims keep
/// their splits, only elements that change owner are sent, nothing is gathered. Not collective: every
/// function here records. Errors are raised on every rank when recorded.
#pragma once
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// @name Shapes
/// @{

/// At least one dim: a scalar becomes (1).
[[nodiscard]] Array atleast_1d(const Operand& x);
/// At least two dims: (n) becomes (1, n).
[[nodiscard]] Array atleast_2d(const Operand& x);
/// At least three dims: (n) becomes (1, n, 1), (m, n) becomes (m, n, 1).
[[nodiscard]] Array atleast_3d(const Operand& x);
/// The arrays broadcast to their common shape.
[[nodiscard]] std::vector<Array> broadcast_arrays(
    const std::vector<Array>& arrays, std::source_location where = std::source_location::current());
/// The last two dims exchanged. ShapeError for fewer than two.
[[nodiscard]] Array matrix_transpose(const Operand& x);
/// transpose(x, order), as the array API calls it.
[[nodiscard]] Array permute_dims(const Operand& x, std::vector<int> order);
/// The slices along an axis.
[[nodiscard]] std::vector<Array> unstack(const Operand& x, int axis = 0);
/// @}

/// @name Joining
/// @{

/// concatenate, as the array API calls it.
[[nodiscard]] Array concat(std::vector<Array> arrays, int axis = 0,
                           std::source_location where = std::source_location::current());
/// Stacks rows: concatenate along the first axis, for arrays of at least two dims.
[[nodiscard]] Array vstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// Side by side: concatenate along the second axis, for 1-D arrays along the first.
[[nodiscard]] Array hstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// In depth: concatenate along the third axis.
[[nodiscard]] Array dstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// 1-D arrays as columns, and matrices, side by side.
[[nodiscard]] Array column_stack(std::vector<Array> arrays,
                                 std::source_location where = std::source_location::current());
/// A matrix from its blocks, row by row.
[[nodiscard]] Array block(const std::vector<std::vector<Array>>& rows,
                          std::source_location where = std::source_location::current());
/// x followed by `values` along an axis.
[[nodiscard]] Array append(const Operand& x, const Operand& values, int axis);
/// The elements of both in row-major order, 1-D, as numpy.append does without an axis.
[[nodiscard]] Array append(const Operand& x, const Operand& values);
/// @}

/// @name Turning
/// @{

/// Columns in reverse order. ShapeError for fewer than two dims.
[[nodiscard]] Array fliplr(const Operand& x);
/// Rows in reverse order. ShapeError for scalars.
[[nodiscard]] Array flipud(const Operand& x);
/// Rotates k times by 90 degrees, from the first towards the second axis.
[[nodiscard]] Array rot90(const Operand& x, int k = 1, std::pair<int, int> axes = {0, 1});
/// @}

/// @name Diagonals and triangles
/// @{

/// Diagonal k of a matrix, or the matrix with a 1-D array on diagonal k. ShapeError for other dims.
[[nodiscard]] Array diag(const Operand& x, int k = 0);
/// The matrix with the flattened array on diagonal k.
[[nodiscard]] Array diagflat(const Operand& x, int k = 0);
/// (n, m) with ones on and below diagonal k; m = -1 means n.
[[nodiscard]] Array tri(std::int64_t n, std::int64_t m = -1, int k = 0, Dtype dtype = float32,
                        std::source_location where = std::source_location::current());
/// The columns x^(n-1), ..., x, 1 of a 1-D array, or in increasing order; n = -1 means its size.
[[nodiscard]] Array vander(const Operand& x, std::int64_t n = -1, bool increasing = false);
/// @}

/// @name Choosing
/// @{

/// The choice of the first condition that is true; `otherwise` if none is. ArgumentError unless there are as
/// many conditions as choices.
[[nodiscard]] Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices,
                           const Operand& otherwise = 0,
                           std::source_location where = std::source_location::current());
/// choices[indices] element by element; indices out of range are clipped ("clip") or wrapped ("wrap").
[[nodiscard]] Array choose(const Operand& indices, const std::vector<Array>& choices,
                           const std::string& mode = "clip");
/// @}

/// @name Orders
/// @{

/// The order by the last key, ties by the key before it, and so on. ArgumentError for no keys.
[[nodiscard]] Array lexsort(const std::vector<Array>& keys, int axis = -1,
                            std::source_location where = std::source_location::current());
/// An order in which the element at kth is where sorting puts it, smaller ones before it, larger ones after
/// it; NaN counts as largest. The same order for every sharding: long lines of float32 and float64 keep the
/// order of x on each side of the element at kth, others are sorted.
[[nodiscard]] Array partition(const Operand& x, int kth, int axis = -1);
/// The indices of partition. IndexError for a kth out of range.
[[nodiscard]] Array argpartition(const Operand& x, int kth, int axis = -1);
/// @}

/// @name Places
/// @{

/// Converts row-major indices into a shape to one index array per dim: int32, int64 where the shape has more
/// elements. IndexError for indices from the host that are out of range.
[[nodiscard]] std::vector<Array> unravel_index(const Operand& places, Shape shape);
/// Converts one index per dim to row-major indices, dtypes and errors as above.
[[nodiscard]] Array ravel_multi_index(const std::vector<Array>& numbers, Shape shape,
                                      std::source_location where = std::source_location::current());
/// The index of each element of a grid along each dim: (dims, shape...).
[[nodiscard]] Array indices(Shape shape, Dtype dtype = int32,
                            std::source_location where = std::source_location::current());
/// @}

/// @name Comparing
/// @{

/// Whether shapes and all elements are equal: one bool on every rank. NaNs are equal if equal_nan.
[[nodiscard]] Array array_equal(const Operand& a, const Operand& b, bool equal_nan = false);
/// Whether all elements are equal after broadcasting.
[[nodiscard]] Array array_equiv(const Operand& a, const Operand& b);
/// @}

}  // namespace tessera
