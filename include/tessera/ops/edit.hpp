/// @file
/// NumPy's ways to edit an array: parts that are put in, taken out or replaced, rounded, packed into bits.
/// Each gives a new array, also those that change their argument in NumPy.
///
/// They are made of the functions of ops/reshape.hpp and ops/index.hpp, whose contracts hold: splits come
/// through where the dims do, only what changes owner travels, nothing is gathered. Not collective: every
/// function here records, but for place, which counts. Errors are raised on every rank when recorded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/special.hpp>

namespace tessera {

/// @name Parts
/// @{

/// Parts along an axis whose extents differ by one at most, the larger ones first. ArgumentError for less
/// than one part.
[[nodiscard]] std::vector<Array> array_split(const Operand& x, int parts, int axis = 0);
/// `values` before the place `at` along an axis: a slice, or several with x's number of dims. IndexError for
/// a place out of range.
[[nodiscard]] Array insert(const Operand& x, std::int64_t at, const Operand& values, int axis = 0);
/// Without the slices along an axis that the places name; negative ones count from the end. IndexError for a
/// place out of range. (`delete` is a word of C++.)
[[nodiscard]] Array delete_(const Operand& x, std::vector<std::int64_t> places, int axis = 0);
/// The elements in row-major order, over and over again, in another shape; zeros if there are none.
[[nodiscard]] Array resize(const Operand& x, Shape shape);
/// @}

/// @name Replacing
/// @{

/// `values` at the places of the flattened x, over and over again if they are fewer. Places out of range are
/// left out.
[[nodiscard]] Array put(const Operand& x, const Operand& places, const Operand& values);
/// `values` at the places of the mask, in their order, over and over again if they are fewer. Collective over
/// all ranks: they are counted.
[[nodiscard]] Array place(const Operand& x, const Operand& mask, const Operand& values);
/// The value, or values one after the other, on the diagonal of an array of two dims, or of more of one
/// extent. ShapeError for others.
[[nodiscard]] Array fill_diagonal(const Operand& x, const Operand& value);
/// @}

/// @name Numbers and bits
/// @{

/// Rounded to so many decimals, half to even; to tens, hundreds, ... for negative ones.
[[nodiscard]] Array round(const Operand& x, int decimals);
/// Jumps of more than half a period along an axis are taken away by whole periods (numpy.unwrap). Of a split
/// axis one scan.
[[nodiscard]] Array unwrap(const Operand& x, int axis = -1, double period = 6.283185307179586);
/// Eight bools, or integers that are not 0, in a uint8 along an axis, the first the most significant; the
/// last byte is filled with zeros. DtypeError for other dtypes.
[[nodiscard]] Array packbits(const Operand& x, int axis = -1);
/// The eight bits of each uint8 along an axis, the most significant first. DtypeError for other dtypes.
[[nodiscard]] Array unpackbits(const Operand& x, int axis = -1);
/// @}

/// @name Other names
/// @{

/// atan2(a, b), as numpy calls it.
[[nodiscard]] inline Array arctan2(const Operand& a, const Operand& b) { return atan2(a, b); }
/// bitwise_left_shift(a, b).
[[nodiscard]] inline Array left_shift(const Operand& a, const Operand& b) { return bitwise_left_shift(a, b); }
/// bitwise_right_shift(a, b).
[[nodiscard]] inline Array right_shift(const Operand& a, const Operand& b) {
  return bitwise_right_shift(a, b);
}
/// population_count(x).
[[nodiscard]] inline Array bitwise_count(const Operand& x) { return population_count(x); }
/// erf_inv(x), as scipy calls it.
[[nodiscard]] inline Array erfinv(const Operand& x) { return erf_inv(x); }
/// eye(n, dtype).
[[nodiscard]] inline Array identity(std::int64_t n, Dtype dtype = float32,
                                    std::source_location where = std::source_location::current()) {
  return eye(n, dtype, where);
}
/// @}

}  // namespace tessera
