// split, flip, roll, pad, tile, repeat: elements move, values do not change. A dim keeps its mesh axes; moves
// along an unsplit dim stay within a rank.
#include <algorithm>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/remap_op.hpp"
#include "ops/index/spread.hpp"
#include "ops/left_out.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

Array slice_along(const Array& x, int dim, std::int64_t start, std::int64_t stop) {
  std::vector<std::int64_t> starts(x.shape().size(), 0), steps(x.shape().size(), 1);
  starts[dim] = start;
  Shape count = x.shape();
  count[dim] = stop - start;
  if (count == x.shape()) return x;
  return remap(slice_params(starts, steps, count), {x});
}

bool is_surely_whole(const Array& x, int dim) {
  const auto& sharding = output_of(x).sharding;
  return sharding && sharding->dim_axes(x.ndim())[dim].empty();
}

// Joins n copies along a dim.
Array tile_along(const Array& x, int dim, std::int64_t n) {
  const auto d = static_cast<std::size_t>(dim);
  Shape shape = x.shape();
  const auto extent = shape[d];
  shape[d] = checked_mul(extent, n, "tile");
  checked_bytes(shape, itemsize(x.dtype()), "tile");
  if (is_surely_whole(x, dim)) {  // (a, b) -> (a, n, b) -> (a, n * b), within each rank
    return reshape(broadcast_to(expand_dims(x, dim), with_dim(x.shape(), dim, n)), shape);
  }
  RemapParams p{shape, {}};
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::int64_t copy = 0; copy < n && x.size() > 0; ++copy) {
    at[d] = copy * extent;
    p.pieces.push_back(whole_piece(0, x.shape(), at));
  }
  return remap(std::move(p), {x});
}

// Element j of the result is x's first element whose cumulative count exceeds j. The result is split as x.
Array repeated(const Array& x, const Array& counts, int dim, std::int64_t total) {
  Shape shape = x.shape();
  shape[dim] = total;
  checked_bytes(shape, itemsize(x.dtype()), "repeat");
  if (total == 0) return slice_along(x, dim, 0, 0);
  Array places = astype(arange(total), int64);
  if (const auto& sharding = output_of(x).sharding; sharding && !x.node()->region)
    places =
        device_put(places, Sharding::from_dim_axes(sharding->mesh(), {sharding->dim_axes(x.ndim())[dim]}));
  return take(x, searchsorted(cumsum(astype(counts, int64), 0), places, "right"), dim);
}

}  // namespace

std::vector<Array> split_at(const Operand& x, std::vector<std::int64_t> places, int axis) {
  const Call call("split_at", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim];
  std::vector<Array> parts;
  std::int64_t start = 0;
  places.push_back(n);
  for (const auto place : places) {
    const auto stop = std::clamp<std::int64_t>(place < 0 ? place + n : place, 0, n);
    parts.push_back(slice_along(x.array, dim, start, std::max(start, stop)));
    start = stop;
  }
  return parts;
}

std::vector<Array> split(const Operand& x, int parts, int axis) {
  const Call call("split", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim];
  if (parts <= 0 || n % parts != 0)
    throw ShapeError(call_text() + ": axis " + std::to_string(dim) + " of shape " +
                     to_string(x.array.shape()) + " has size " + std::to_string(n) + ", which is not " +
                     std::to_string(parts) + " equal parts. Use split_at with the places to cut");
  std::vector<Array> result;
  for (int i = 0; i < parts; ++i)
    result.push_back(slice_along(x.array, dim, n / parts * i, n / parts * (i + 1)));
  return result;
}

Array flip(const Operand& x, Axes axes) {
  const Call call("flip", x.where);
  check_usable(x.array);
  const auto dims = checked_dims(axes.values, x.array.ndim(), true);
  const Shape& shape = x.array.shape();
  if (x.array.size() == 0 || dims.empty()) return x.array;
  RemapPiece piece = whole_piece(0, shape, std::vector<std::int64_t>(shape.size(), 0));
  for (const int dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    piece.offset[d] = shape[d] - 1;
    piece.step[d] = -1;
  }
  return remap({shape, {std::move(piece)}}, {x.array});
}

//   [0 1 2 3 4] by 2  ->  [3 4 | 0 1 2]: two pieces
Array roll(const Operand& x, int shift, int axis) {
  const Call call("roll", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto d = static_cast<std::size_t>(dim);
  const Shape& shape = x.array.shape();
  if (x.array.size() == 0) return x.array;
  const auto n = shape[d], by = ((shift % n) + n) % n;
  RemapPiece head = whole_piece(0, shape, std::vector<std::int64_t>(shape.size(), 0)), tail = head;
  if (by == 0) return may_leave_out(x.array) ? x.array : remap({shape, {std::move(head)}}, {x.array});
  head.to[d] = {0, by};
  head.offset[d] = n - by;
  tail.to[d] = {by, n};
  tail.offset[d] = -by;
  return remap({shape, {std::move(head), std::move(tail)}}, {x.array});
}

Array roll(const Operand& x, std::vector<int> shifts, std::vector<int> axes) {
  const Call call("roll", x.where);
  check_usable(x.array);
  if (shifts.size() == 1) shifts.resize(axes.size(), shifts[0]);
  if (shifts.size() != axes.size())
    throw ArgumentError(call_text() + ": " + format_count(shifts.size(), "shift") + " for " +
                        format_count(axes.size(), "axis") + "; give one for each, or one for all");
  Array y = x.array;
  for (std::size_t i = 0; i < axes.size(); ++i) y = roll(y, shifts[i], axes[i]);
  return y;
}
Array roll(const Operand& x, int shift) {
  const Call call("roll", x.where);
  check_usable(x.array);
  return reshape(roll(reshape(x, Shape{-1}), shift, 0), x.array.shape());
}

Array pad(const Operand& x, std::vector<std::pair<int, int>> widths, double value) {
  const Call call("pad", x.where);
  check_usable(x.array);
  Shape shape = x.array.shape();
  if (widths.size() == 1 && shape.size() > 1) widths.resize(shape.size(), widths[0]);
  if (widths.size() != shape.size())
    throw ArgumentError(call_text() + ": " + std::to_string(widths.size()) + " pairs of widths for shape " +
                        to_string(shape) + "; give one pair (before, after) per dimension, or one for all");
  std::vector<std::int64_t> at;
  bool is_needed = false;
  for (std::size_t d = 0; d < widths.size(); ++d) {
    const std::int64_t before = widths[d].first, after = widths[d].second;
    if (before < 0 || after < 0)
      throw ArgumentError(call_text() + ": the widths (" + std::to_string(before) + ", " +
                          std::to_string(after) + ") of dimension " + std::to_string(d) +
                          " must not be negative. To cut elements off, take a slice");
    at.push_back(before);
    shape[d] += before + after;
    is_needed |= before + after > 0;
  }
  if (!is_needed && may_leave_out(x.array)) return x.array;
  checked_bytes(shape, itemsize(x.array.dtype()), "pad");
  RemapParams p{shape, {}, {value, 0, false}};
  if (x.array.size() > 0) p.pieces.push_back(whole_piece(0, x.array.shape(), at));
  return remap(std::move(p), {x.array});
}

Array tile(const Operand& x, std::vector<int> repeats) {
  const Call call("tile", x.where);
  check_usable(x.array);
  Array y = x.array;
  for (const int n : repeats)
    if (n < 0)
      throw ArgumentError(call_text() + ": the number of repeats " + std::to_string(n) + " is negative");
  while (static_cast<int>(repeats.size()) < y.ndim()) repeats.insert(repeats.begin(), 1);
  if (static_cast<int>(repeats.size()) > y.ndim()) {
    auto extents = y.shape().vector();
    extents.insert(extents.begin(), repeats.size() - extents.size(), 1);
    y = reshape(y, Shape(std::move(extents)));
  }
  for (int d = 0; d < y.ndim(); ++d)
    if (repeats[d] != 1) y = tile_along(y, d, repeats[d]);
  return y;
}

Array repeat(const Operand& x, int n, int axis) {
  const Call call("repeat", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (n < 0)
    throw ArgumentError(call_text() + ": the number of repeats " + std::to_string(n) + " is negative");
  if (n == 0) return slice_along(x.array, dim, 0, 0);
  Shape shape = x.array.shape();
  shape[dim] = checked_mul(shape[dim], n, "repeat");
  checked_bytes(shape, itemsize(x.array.dtype()), "repeat");
  return n == 1 ? x.array : repeat_each(x.array, dim, n);
}

Array repeat(const Operand& x, int n) {
  const Call call("repeat", x.where);
  check_usable(x.array);
  return repeat(reshape(x, Shape{-1}), n, 0);
}

Array repeat(const Operand& x, std::vector<std::int64_t> counts) {
  const Call call("repeat", x.where);
  check_usable(x.array);
  return repeat(reshape(x, Shape{-1}), std::move(counts), 0);
}

Array repeat(const Operand& x, std::vector<std::int64_t> counts, int axis) {
  const Call call("repeat", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim];
  if (counts.size() == 1) counts.resize(n, counts[0]);
  if (std::ssize(counts) != n)
    throw ShapeError(call_text() + ": " + std::to_string(counts.size()) + " counts for axis " +
                     std::to_string(dim) + " of shape " + to_string(x.array.shape()) +
                     "; give one for each of its " + std::to_string(n) + " elements, or one for all");
  std::int64_t total = 0;
  for (const auto count : counts) {
    if (count < 0)
      throw ArgumentError(call_text() + ": the number of repeats " + std::to_string(count) + " is negative");
    if (__builtin_add_overflow(total, count, &total))
      throw ArgumentError(call_text() + ": the counts add up to more than 2^63");
  }
  return repeated(x.array, array(HostArray(counts, Shape{n})), dim, total);
}

Array repeat(const Operand& x, const Operand& counts, int axis, std::int64_t total) {
  const Call call("repeat", x.where);
  check_usable(x.array);
  check_usable(counts.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (counts.array.shape() != Shape{x.array.shape()[dim]})
    throw ShapeError(call_text() + ": counts of shape " + to_string(counts.array.shape()) + " for axis " +
                     std::to_string(dim) + " of shape " + to_string(x.array.shape()) +
                     "; give one for each of its elements");
  if (!is_integer(counts.array.dtype()))
    throw DtypeError(call_text() + ": counts of " + name(counts.array.dtype()) + "; they must be integers");
  if (total < 0) throw ArgumentError(call_text() + ": the extent " + std::to_string(total) + " is negative");
  if (total > 0 && x.array.shape()[dim] == 0)
    throw ShapeError(call_text() + ": axis " + std::to_string(dim) + " of shape " +
                     to_string(x.array.shape()) + " has no element to repeat");
  return repeated(x.array, counts.array, dim, total);
}

}  // namespace tessera
