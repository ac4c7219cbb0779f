// NumPy's functions that edit an array, composed of slices, concatenations and scatters.
#include <tessera/control/lax.hpp>
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/ops/sized.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

Array part_of(const Array& x, int dim, std::int64_t start, std::int64_t stop) {
  std::vector<IndexPart> parts(dim, IndexPart(slice()));
  parts.emplace_back(slice(start, stop));
  return index(x, std::move(parts));
}
std::int64_t place_in(std::int64_t place, std::int64_t extent, std::int64_t last) {
  const auto at = place < 0 ? place + extent : place;
  if (at < 0 || at > last)
    throw IndexError(call_text() + ": place " + std::to_string(place) +
                     " is out of range for an axis of extent " + std::to_string(extent));
  return at;
}

// Repeats values to one per position.
Array repeated(const Array& values, std::int64_t count) {
  return values.size() == count ? ravel(values) : resize(values, Shape{count});
}
Array at_places(const Array& x, const Array& places, const Array& values) {
  return reshape(At(ravel(x), {IndexPart(places)}).set(repeated(values, places.size())), x.shape());
}

// Ids with those below 0 moved past the end, where a scatter leaves them out; and the shape of the result.
std::pair<Array, Shape> checked_segments(const Array& x, const Array& ids, std::int64_t segments) {
  check_usable(x);
  check_usable(ids);
  if (!is_integer(ids.dtype()))
    throw DtypeError(call_text() + ": ids are integers, these are " + name(ids.dtype()));
  if (x.ndim() == 0 || ids.ndim() != 1 || ids.size() != x.shape()[0] || segments < 0)
    throw ShapeError(call_text() + ": ids of shape " + to_string(ids.shape()) + " and " +
                     std::to_string(segments) + " segments for slices of shape " + to_string(x.shape()) +
                     "; there must be one id for each slice of the first axis");
  auto extents = std::vector<std::int64_t>(x.shape().begin(), x.shape().end());
  extents[0] = segments;
  return {tessera::where(ids < 0, segments, astype(ids, int64)), Shape(std::move(extents))};
}
// -inf, or the least integer; the opposite of highest_of.
Array lowest_of(Dtype dtype) {
  if (is_integer(dtype)) {
    const bool is_signed = dtype == int8 || dtype == int16 || dtype == int32 || dtype == int64;
    return is_signed ? ones(Shape{}, dtype) << (8 * itemsize(dtype) - 1) : zeros(Shape{}, dtype);
  }
  return is_bool(dtype) ? zeros(Shape{}, dtype) : astype(-std::numeric_limits<double>::infinity(), dtype);
}
Array highest_of(Dtype dtype) {
  if (is_integer(dtype)) return bitwise_invert(lowest_of(dtype));
  return is_bool(dtype) ? ones(Shape{}, dtype) : astype(std::numeric_limits<double>::infinity(), dtype);
}

}  // namespace

std::vector<Array> array_split(const Operand& x, int parts, int axis) {
  const Call call("array_split", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (parts < 1)
    throw ArgumentError(call_text() + ": " + std::to_string(parts) + " parts; there must be one at least");
  const auto each = x.array.shape()[dim] / parts, more = x.array.shape()[dim] % parts;
  std::vector<std::int64_t> places;
  for (std::int64_t n = 1; n < parts; ++n) places.push_back(n * each + std::min(n, more));
  return split_at(x, std::move(places), dim);
}

Array expand_dims(const Operand& x, std::vector<int> axes) {
  const Call call("expand_dims", x.where);
  check_usable(x.array);
  const int ndim = x.array.ndim() + static_cast<int>(axes.size());
  for (int& axis : axes) axis = checked_dim(axis, ndim);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    throw ArgumentError(call_text() + ": a new axis is named twice");
  Array result = x.array;
  for (const int axis : axes) result = expand_dims(result, axis);
  return result;
}

Array pad(const Operand& x, int width, double value) { return pad(x, {{width, width}}, value); }
Array pad(const Operand& x, int width, const std::string& mode, double value) {
  return pad(x, {{width, width}}, mode, value);
}

Array insert(const Operand& x, std::int64_t at, const Operand& values, int axis) {
  const Call call("insert", x.where);
  check_usable(x.array);
  check_usable(values.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim], place = place_in(at, n, n);
  Shape extents = x.array.shape();
  extents[dim] = values.array.ndim() == x.array.ndim() ? values.array.shape()[dim] : 1;
  Array put_in = cast_to(values.array, x.array.dtype());
  if (put_in.ndim() + 1 == x.array.ndim()) put_in = expand_dims(put_in, dim);
  return concatenate(
      {part_of(x.array, dim, 0, place), broadcast_to(put_in, extents), part_of(x.array, dim, place, n)}, dim);
}

Array delete_(const Operand& x, std::vector<std::int64_t> places, int axis) {
  const Call call("delete_", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim];
  for (auto& place : places) place = place_in(place, n, n - 1);
  std::sort(places.begin(), places.end());
  std::vector<Array> kept;
  std::int64_t from = 0;
  for (const auto place : places) {
    if (place > from) kept.push_back(part_of(x.array, dim, from, place));
    from = place + 1;
  }
  if (from < n || kept.empty()) kept.push_back(part_of(x.array, dim, std::min(from, n), n));
  return kept.size() == 1 ? kept[0] : concatenate(std::move(kept), dim);
}

Array resize(const Operand& x, Shape shape) {
  const Call call("resize", x.where);
  check_usable(x.array);
  const auto size = shape.elements(), own = x.array.size();
  if (size == 0 || own == 0) return zeros(std::move(shape), x.array.dtype());
  const auto times = (size + own - 1) / own;
  const Array all = times == 1 ? ravel(x) : ravel(broadcast_to(reshape(x, Shape{1, own}), Shape{times, own}));
  return reshape(part_of(all, 0, 0, size), std::move(shape));
}

Array resize(const Operand& x, std::int64_t size) { return resize(x, Shape{size}); }

Array segment_sum(const Operand& x, const Operand& ids, std::int64_t segments) {
  const Call call("segment_sum", x.where);
  const auto [at, shape] = checked_segments(x.array, ids.array, segments);
  return At(zeros(shape, x.array.dtype()), {IndexPart(at)}).add(x.array);
}
Array segment_prod(const Operand& x, const Operand& ids, std::int64_t segments) {
  const Call call("segment_prod", x.where);
  const auto [at, shape] = checked_segments(x.array, ids.array, segments);
  return At(ones(shape, x.array.dtype()), {IndexPart(at)}).multiply(x.array);
}
Array segment_max(const Operand& x, const Operand& ids, std::int64_t segments) {
  const Call call("segment_max", x.where);
  const auto [at, shape] = checked_segments(x.array, ids.array, segments);
  return At(broadcast_to(lowest_of(x.array.dtype()), shape), {IndexPart(at)}).max(x.array);
}
Array segment_min(const Operand& x, const Operand& ids, std::int64_t segments) {
  const Call call("segment_min", x.where);
  const auto [at, shape] = checked_segments(x.array, ids.array, segments);
  return At(broadcast_to(highest_of(x.array.dtype()), shape), {IndexPart(at)}).min(x.array);
}

Array put(const Operand& x, const Operand& places, const Operand& values) {
  const Call call("put", x.where);
  check_usable(x.array);
  check_usable(places.array);
  check_usable(values.array);
  return at_places(x.array, ravel(places), values.array);
}
Array place(const Operand& x, const Operand& mask, const Operand& values) {
  const Call call("place", x.where);
  check_usable(x.array);
  check_usable(mask.array);
  check_usable(values.array);
  return at_places(x.array, flatnonzero(Operand(broadcast_to(mask, x.array.shape()), x.where)), values.array);
}
Array fill_diagonal(const Operand& x, const Operand& value) {
  const Call call("fill_diagonal", x.where);
  check_usable(x.array);
  check_usable(value.array);
  const Shape& shape = x.array.shape();
  const bool is_cube = std::all_of(shape.begin(), shape.end(), [&](auto n) { return n == shape[0]; });
  if (shape.ndim() < 2 || (shape.ndim() > 2 && !is_cube))
    throw ShapeError(call_text() + ": an array of shape " + to_string(shape) +
                     " has no diagonal; it needs two dimensions, or more of one extent");
  const auto n = *std::min_element(shape.begin(), shape.end());
  const Array numbers = arange(n);
  return At(x.array, std::vector<IndexPart>(static_cast<std::size_t>(shape.ndim()), IndexPart(numbers)))
      .set(repeated(value.array, n));
}

Array round(const Operand& x, int decimals) {
  const Call call("round", x.where);
  check_usable(x.array);
  const double scale = std::pow(10.0, std::abs(decimals));
  if (decimals == 0 || (decimals > 0 && is_integer(x.array.dtype()))) return round(x);
  const Array rounded = decimals > 0 ? round(x.array * scale) / scale : round(x.array / scale) * scale;
  return cast_to(rounded, x.array.dtype());
}

Array unwrap(const Operand& x, int axis, double period) {
  const Call call("unwrap", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const Array angles = cast_to(x.array, to_inexact(x.array.dtype()));
  const auto n = angles.shape()[dim];
  if (n < 2) return angles;
  const Array steps = part_of(angles, dim, 1, n) - part_of(angles, dim, 0, n - 1);
  const Array turned = remainder(steps + period / 2, period) - period / 2;
  const Array kept = where((turned == -period / 2) & (steps > 0), period / 2, turned);
  const Array change = where(abs(steps) < period / 2, 0.0, kept - steps);
  return concatenate({part_of(angles, dim, 0, 1), part_of(angles, dim, 1, n) + cumsum(change, dim)}, dim);
}

Array bitwise_count(const Operand& x) {
  const Call call("bitwise_count", x.where);
  check_usable(x.array);
  return astype(population_count(abs(x.array)), uint8);
}

std::vector<Array> where(const Operand& condition) { return nonzero(condition); }
Array delete_(const Operand& x, std::int64_t place, int axis) { return delete_(x, std::vector{place}, axis); }

}  // namespace tessera
