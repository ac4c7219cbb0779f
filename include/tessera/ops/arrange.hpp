/// @file
/// More of numpy's ways to arrange elements: joining blocks, turning, diagonals, choosing, orders of several
/// keys.
///
/// They are made of the functions of ops/reshape.hpp and ops/index.hpp, whose contracts hold: splits come
/// through where the dims do, only what changes owner travels, nothing is gathered. Not collective: every
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
/// The arrays in their common shape.
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
/// Rows under each other: concatenate along the first axis of arrays of at least two dims.
[[nodiscard]] Array vstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// Side by side: concatenate along the second axis, of 1-D arrays along the first.
[[nodiscard]] Array hstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// Behind each other: concatenate along the third axis.
[[nodiscard]] Array dstack(std::vector<Array> arrays,
                           std::source_location where = std::source_location::current());
/// 1-D arrays as columns, matrices as they are, side by side.
[[nodiscard]] Array column_stack(std::vector<Array> arrays,
                                 std::source_location where = std::source_location::current());
/// A matrix from its blocks, row by row.
[[nodiscard]] Array block(const std::vector<std::vector<Array>>& rows,
                          std::source_location where = std::source_location::current());
/// `values` behind x along an axis.
[[nodiscard]] Array append(const Operand& x, const Operand& values, int axis);
/// @}

/// @name Turning
/// @{

/// Columns in reverse order. ShapeError for fewer than two dims.
[[nodiscard]] Array fliplr(const Operand& x);
/// Rows in reverse order. ShapeError for scalars.
[[nodiscard]] Array flipud(const Operand& x);
/// Turned k times by 90 degrees, from the first of both axes to the second.
[[nodiscard]] Array rot90(const Operand& x, int k = 1, std::pair<int, int> axes = {0, 1});
/// @}

/// @name Diagonals and triangles
/// @{

/// Diagonal k of a matrix, or the matrix that has a 1-D array there. ShapeError for other dims.
[[nodiscard]] Array diag(const Operand& x, int k = 0);
/// The matrix that has the flattened array on diagonal k.
[[nodiscard]] Array diagflat(const Operand& x, int k = 0);
/// (n, m) with ones on and below diagonal k; m = -1 means n.
[[nodiscard]] Array tri(std::int64_t n, std::int64_t m = -1, int k = 0, Dtype dtype = float32,
                        std::source_location where = std::source_location::current());
/// The columns x^(n-1), ..., x, 1 of a 1-D array, or the other way round; n = -1 means its size.
[[nodiscard]] Array vander(const Operand& x, std::int64_t n = -1, bool increasing = false);
/// @}

/// @name Choosing
/// @{

/// The choice of the first condition that is true; `otherwise` where none is. ArgumentError when there are
/// not as many conditions as choices.
[[nodiscard]] Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices,
                           const Operand& otherwise = 0,
                           std::source_location where = std::source_location::current());
/// choices[indices] element by element; indices out of range are clipped ("clip") or wrapped ("wrap").
[[nodiscard]] Array choose(const Operand& indices, const std::vector<Array>& choices,
                           const std::string& mode = "clip");
/// @}

/// @name Orders
/// @{

/// The order by the last of the keys, equal ones by the key before it, and so on. ArgumentError for no keys.
[[nodiscard]] Array lexsort(const std::vector<Array>& keys, int axis = -1,
                            std::source_location where = std::source_location::current());
/// An order in which the element at kth is where sorting puts it, smaller ones before it. Sorts altogether.
[[nodiscard]] Array partition(const Operand& x, int kth, int axis = -1);
/// The places of partition. IndexError for a kth out of range.
[[nodiscard]] Array argpartition(const Operand& x, int kth, int axis = -1);
/// @}

/// @name Places
/// @{

/// The numbers of row-major places in a shape: an array per dim.
[[nodiscard]] std::vector<Array> unravel_index(const Operand& places, Shape shape);
/// The row-major places of elements, from their numbers in each dim.
[[nodiscard]] Array ravel_multi_index(const std::vector<Array>& numbers, Shape shape,
                                      std::source_location where = std::source_location::current());
/// The index of each element of a grid along each dim: (dims, shape...).
[[nodiscard]] Array indices(Shape shape, Dtype dtype = int32,
                            std::source_location where = std::source_location::current());
/// @}

/// @name Comparing
/// @{

/// Whether shapes and all elements are equal: one bool on every rank. NaN are equal if equal_nan.
[[nodiscard]] Array array_equal(const Operand& a, const Operand& b, bool equal_nan = false);
/// Whether all elements are equal after broadcasting.
[[nodiscard]] Array array_equiv(const Operand& a, const Operand& b);
/// @}

}  // namespace tessera
