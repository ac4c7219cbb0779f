/// @file
/// NumPy's functions that edit an array: insert, remove or replace parts, round, pack into bits. Each returns
/// a new array, even if NumPy's changes its argument.
///
/// Composed of the functions of ops/reshape.hpp and ops/index.hpp, with their contracts: remaining dims keep
/// their splits, only elements that change owner are sent, nothing is gathered. Not collective: every
/// function here records, except place, which counts. Errors are raised on every rank when recorded.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/reshape.hpp>
#include <tessera/ops/special.hpp>

namespace tessera {

/// @name Parts
/// @{

/// Parts along an axis whose extents differ by at most one, the larger ones first. ArgumentError for less
/// than one part.
[[nodiscard]] std::vector<Array> array_split(const Operand& x, int parts, int axis = 0);
/// split_at(x, places, axis) under numpy.split's name: [0:p0], [p0:p1], ... up to the end.
template <std::integral I>
[[nodiscard]] std::vector<Array> split(const Operand& x, std::initializer_list<I> places, int axis = 0) {
  return split_at(x, std::vector<std::int64_t>(places.begin(), places.end()), axis);
}
/// Several new dims of extent 1, at these positions of the result.
[[nodiscard]] Array expand_dims(const Operand& x, std::vector<int> axes);
/// pad of the same width before and after every dim.
[[nodiscard]] Array pad(const Operand& x, int width, double value = 0);
[[nodiscard]] Array pad(const Operand& x, int width, const std::string& mode, double value = 0);
/// x with `values` inserted before index `at` of an axis: a slice, or several with x's number of dims.
/// IndexError for an index out of range.
[[nodiscard]] Array insert(const Operand& x, std::int64_t at, const Operand& values, int axis = 0);
/// x without the slices at these indices of an axis; negative ones count from the end. IndexError for an
/// index out of range. (`delete` is a C++ keyword.)
[[nodiscard]] Array delete_(const Operand& x, std::vector<std::int64_t> places, int axis = 0);
[[nodiscard]] Array delete_(const Operand& x, std::int64_t place, int axis = 0);
/// The elements in row-major order, repeated to fill another shape; zeros if there are none.
[[nodiscard]] Array resize(const Operand& x, Shape shape);
[[nodiscard]] Array resize(const Operand& x, std::int64_t size);
/// @}

/// @name Segments
/// Reductions of the slices of x along its first axis that have the same number in `ids`, a 1-D array of
/// integers: slice n of the result is that of id n (jax.ops.segment_sum). Ids outside of [0, segments) are
/// left out. x and ids are split alike, and each rank receives the terms of its block of the result.
/// ShapeError unless there is an id for each slice, DtypeError for ids that are no integers.
/// @{

/// Sums; 0 where no slice has the id.
[[nodiscard]] Array segment_sum(const Operand& x, const Operand& ids, std::int64_t segments);
/// Products; 1 where no slice has the id.
[[nodiscard]] Array segment_prod(const Operand& x, const Operand& ids, std::int64_t segments);
/// Largest elements; -inf, or the least integer, where no slice has the id.
[[nodiscard]] Array segment_max(const Operand& x, const Operand& ids, std::int64_t segments);
/// Smallest elements; inf, or the largest integer, where no slice has the id.
[[nodiscard]] Array segment_min(const Operand& x, const Operand& ids, std::int64_t segments);
/// @}

/// @name Replacing
/// @{

/// Puts `values` at these indices of the flattened x, repeated if there are fewer. Indices out of range are
/// ignored.
[[nodiscard]] Array put(const Operand& x, const Operand& places, const Operand& values);
/// Puts `values` at the true elements of the mask, in order, repeated if there are fewer. Collective over all
/// ranks, which count them.
[[nodiscard]] Array place(const Operand& x, const Operand& mask, const Operand& values);
/// Puts a value, or values in order, on the diagonal of an array with two dims, or with more dims of equal
/// extents. ShapeError for others.
[[nodiscard]] Array fill_diagonal(const Operand& x, const Operand& value);
/// @}

/// @name Numbers and bits
/// @{

/// Rounded to this number of decimals, half to even; to tens, hundreds, ... if negative.
[[nodiscard]] Array round(const Operand& x, int decimals);
/// Removes jumps of more than half a period along an axis by adding whole periods (numpy.unwrap). A split
/// axis takes one scan.
[[nodiscard]] Array unwrap(const Operand& x, int axis = -1, double period = 6.283185307179586);
/// Packs eight bools, or integers that count as true if nonzero, into a uint8 along an axis, the first one
/// most significant, or least with the bitorder little; the last byte is padded with zeros. DtypeError for
/// other dtypes, ArgumentError for other bit orders than big and little.
[[nodiscard]] Array packbits(const Operand& x, int axis = -1, const std::string& bitorder = "big");
/// The eight bits of each uint8 along an axis, the most significant first, or last with the bitorder little.
/// DtypeError for other dtypes, ArgumentError for other bit orders.
[[nodiscard]] Array unpackbits(const Operand& x, int axis = -1, const std::string& bitorder = "big");
/// @}

/// @name Other names
/// @{

/// atan2(a, b) under numpy's name.
[[nodiscard]] inline Array arctan2(const Operand& a, const Operand& b) { return atan2(a, b); }
/// bitwise_left_shift(a, b).
[[nodiscard]] inline Array left_shift(const Operand& a, const Operand& b) { return bitwise_left_shift(a, b); }
/// bitwise_right_shift(a, b).
[[nodiscard]] inline Array right_shift(const Operand& a, const Operand& b) {
  return bitwise_right_shift(a, b);
}
/// The number of one bits of |x|, uint8 (numpy.bitwise_count): population_count(-1) is 32, bitwise_count 1.
[[nodiscard]] Array bitwise_count(const Operand& x);
/// erf_inv(x) under scipy's name.
[[nodiscard]] inline Array erfinv(const Operand& x) { return erf_inv(x); }
/// nonzero(condition): the places where it holds, an array for each dim. Collective: they are counted.
[[nodiscard]] std::vector<Array> where(const Operand& condition);
/// eye(n, dtype).
[[nodiscard]] inline Array identity(std::int64_t n, Dtype dtype = float32,
                                    std::source_location where = std::source_location::current()) {
  return eye(n, dtype, where);
}
/// @}

}  // namespace tessera
