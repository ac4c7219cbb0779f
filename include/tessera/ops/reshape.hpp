/// @file
/// Ops that rearrange elements: shapes, order of axes, joining, splitting, shifting, repeating.
///
/// **Sharding.** Remaining dims keep the mesh axes that split them; a new dim is not split.
///
/// **Communication.** Not collective: every function here records. Elements that change owner are sent
/// directly from the rank that has them to the rank that needs them, and nothing else moves; no operand is
/// gathered. Values do not change, nor do dtypes unless arrays of several dtypes are joined.
///
/// **Errors.** IndexError for an axis that is out of range, ShapeError and ArgumentError as stated. All are
/// raised on every rank when recorded.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops/axes.hpp>

namespace tessera {

/// @name Shape and order of axes
/// @{

/// The elements in row-major order in another shape; one extent may be -1. A split that the new shape can
/// express is kept and costs nothing: (6, 4) to (24), split by rows; (8) over ("x", "y") to (4, 2) over x and
/// y. With uneven blocks neighbours exchange the difference between the blocks. A split that cannot be
/// expressed, as that of 4 in (6, 4) to (24), becomes one of the rows: ranks exchange about a block each.
/// ShapeError if the numbers of elements differ.
[[nodiscard]] Array reshape(const Operand& x, Shape shape);
/// The elements in row-major order in one dim: reshape(x, {-1}).
[[nodiscard]] inline Array ravel(const Operand& x) { return reshape(x, {-1}); }
/// The axes in the order of the permutation; reversed without one. Moves nothing: axes keep their splits.
[[nodiscard]] Array transpose(const Operand& x);
[[nodiscard]] Array transpose(const Operand& x, std::vector<int> permutation);
/// Exchanges axes a and b. Moves nothing.
[[nodiscard]] Array swapaxes(const Operand& x, int a, int b);
/// Moves one axis to another position; the others keep their order. Moves no data.
[[nodiscard]] Array moveaxis(const Operand& x, int from, int to);
/// Removes the named axes of extent 1, or all of them. ShapeError if one is longer. Moves nothing.
[[nodiscard]] Array squeeze(const Operand& x, Axes axes = {});
/// Inserts a new axis of extent 1 at `axis`. Moves nothing.
[[nodiscard]] Array expand_dims(const Operand& x, int axis);
/// x repeated along new leading dims and dims of extent 1. Each rank repeats within its own block; nothing
/// moves. ShapeError if the shapes do not allow it.
[[nodiscard]] Array broadcast_to(const Operand& x, Shape shape);
/// @}

/// @name Joining and splitting
/// @{

/// The arrays joined along an axis, in their common dtype. The result is split like the operand for which the
/// fewest bytes move. ArgumentError for no arrays, ShapeError if other extents differ.
[[nodiscard]] Array concatenate(std::vector<Array> arrays, int axis = 0,
                                std::source_location where = std::source_location::current());
/// Arrays of one shape joined along a new axis; otherwise as concatenate.
[[nodiscard]] Array stack(std::vector<Array> arrays, int axis = 0,
                          std::source_location where = std::source_location::current());
/// Equal parts along an axis. ShapeError if it does not divide into that many. Along a split axis each part
/// is split over all ranks again.
[[nodiscard]] std::vector<Array> split(const Operand& x, int parts, int axis = 0);
/// The number of parts follows from the bindings: auto [left, right] = split<2>(x, 1).
template <std::size_t n> [[nodiscard]] std::array<Array, n> split(const Operand& x, int axis = 0) {
  std::array<Array, n> parts;
  std::ranges::move(split(x, static_cast<int>(n), axis), parts.begin());
  return parts;
}
/// [0:p0], [p0:p1], ... up to the end; positions may be negative, and out of range ones are clamped.
[[nodiscard]] std::vector<Array> split_at(const Operand& x, std::vector<std::int64_t> places, int axis = 0);
/// @}

/// @name Shifting, padding, repeating
/// @{

/// Reverses the axes, or all of them.
[[nodiscard]] Array flip(const Operand& x, Axes axes = {});
/// Elements shifted along an axis; those that leave at one end enter at the other. Along a split axis
/// neighbours exchange `shift` slices, as a stencil needs.
[[nodiscard]] Array roll(const Operand& x, int shift, int axis);
/// Shifts along several axes, each by its own shift, or all by a single one. ArgumentError for another number
/// of shifts.
[[nodiscard]] Array roll(const Operand& x, std::vector<int> shifts, std::vector<int> axes);
/// Shifts in row-major order, across the ends of rows; the shape is kept.
[[nodiscard]] Array roll(const Operand& x, int shift);
/// Surrounds x by `value`: a pair (before, after) for each dim, or one for all. ArgumentError for negative
/// widths or another number of pairs.
[[nodiscard]] Array pad(const Operand& x, std::vector<std::pair<int, int>> widths, double value = 0);
/// numpy.pad's modes: "constant" (`value`), "edge", "reflect" and "symmetric" (mirrored without and with the
/// edge), "wrap", "linear_ramp" (down to `value`), "maximum", "minimum", "mean", "median" (of the whole
/// axis), "empty" (zeros). Axes are padded one after the other, so corners are padding of padding.
/// ArgumentError for another mode, ShapeError if an axis without elements would have to be extended.
[[nodiscard]] Array pad(const Operand& x, std::vector<std::pair<int, int>> widths, const std::string& mode,
                        double value = 0);
/// The whole array repeated along each dim (numpy.tile). ArgumentError for negative numbers.
[[nodiscard]] Array tile(const Operand& x, std::vector<int> repeats);
/// Each element repeated n times along an axis (numpy.repeat). ArgumentError for a negative n.
[[nodiscard]] Array repeat(const Operand& x, int n, int axis);
/// The same of all elements in row-major order, 1-D, as numpy.repeat does without an axis.
[[nodiscard]] Array repeat(const Operand& x, int n);
/// Element i repeated counts[i] times. Along a split axis ranks fetch the elements of their blocks of the
/// result. ArgumentError for a negative count, ShapeError unless there are as many counts as elements, or
/// one.
[[nodiscard]] Array repeat(const Operand& x, std::vector<std::int64_t> counts, int axis);
/// The same of all elements in row-major order, 1-D.
[[nodiscard]] Array repeat(const Operand& x, std::vector<std::int64_t> counts);
/// The same with counts known only at run time, and the extent of the result given: longer results are
/// truncated, and shorter ones padded with the last element (jax.numpy.repeat's total_repeat_length).
/// ShapeError unless counts is 1-D and as long as the axis.
[[nodiscard]] Array repeat(const Operand& x, const Operand& counts, int axis, std::int64_t total);
/// @}

/// @name Parts of matrices
/// Every rank knows from its block's position what to keep.
/// @{

/// The last two dims' elements on and below diagonal k, zeros elsewhere. Moves nothing.
[[nodiscard]] Array tril(const Operand& x, int k = 0);
/// The last two dims' elements on and above diagonal k, zeros elsewhere. Moves nothing.
[[nodiscard]] Array triu(const Operand& x, int k = 0);
/// Diagonal `offset` of the first two dims, as the last dim (NumPy). Split columns cost one all-reduce of the
/// result.
[[nodiscard]] Array diagonal(const Operand& x, int offset = 0);
/// @}

/// @name Grids and differences
/// @{

/// Coordinates of a grid from those of its axes: array i varies along axis i; with "xy" (NumPy's default) the
/// first two axes are exchanged, with "ij" not. ArgumentError for another indexing, ShapeError unless 1-D.
[[nodiscard]] std::vector<Array> meshgrid(std::vector<Array> axes, const std::string& indexing = "xy",
                                          std::source_location where = std::source_location::current());
/// The number of arrays follows from the bindings: auto [x, y] = meshgrid<2>({a, b}). ArgumentError for
/// another number of axes.
template <std::size_t n>
[[nodiscard]] std::array<Array, n> meshgrid(std::vector<Array> axes, const std::string& indexing = "xy",
                                            std::source_location where = std::source_location::current()) {
  detail::check_bindings(axes.size(), n, "meshgrid", where);
  std::array<Array, n> grids;
  std::ranges::move(meshgrid(std::move(axes), indexing, where), grids.begin());
  return grids;
}
/// x[1:] - x[:-1] along an axis, n times; for bool, where neighbours differ. A split axis sends one slice to
/// a neighbour each time. ArgumentError for a negative n.
[[nodiscard]] Array diff(const Operand& x, int n = 1, int axis = -1);
/// @}

}  // namespace tessera
