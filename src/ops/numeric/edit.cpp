// NumPy's functions that edit an array, composed of slices, concatenations and scatters.
#include <tessera/ops/arrange.hpp>
#include <tessera/ops/edit.hpp>
#include <tessera/ops/sized.hpp>

#include <algorithm>
#include <cmath>

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

Array as_bits(const Array& x, int dim) {
  if (!is_integer(x.dtype()) && !is_bool(x.dtype()))
    throw DtypeError(call_text() + ": bits of " + name(x.dtype()) + "; it takes bools and integers");
  return moveaxis(astype(x != 0, uint8), dim, -1);
}
// 128, 64, ..., 1 or 7, 6, ..., 0.
Array shifts() { return astype(7 - arange(8), uint8); }

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

Array insert(const Operand& x, std::int64_t at, const Operand& values, int axis) {
  const Call call("insert", x.where);
  check_usable(x.array);
  check_usable(values.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto n = x.array.shape()[dim], place = place_in(at, n, n);
  auto extents = x.array.shape().vector();
  extents[dim] = values.array.ndim() == x.array.ndim() ? values.array.shape()[dim] : 1;
  Array put_in = cast_to(values.array, x.array.dtype());
  if (put_in.ndim() + 1 == x.array.ndim()) put_in = expand_dims(put_in, dim);
  return concatenate({part_of(x.array, dim, 0, place), broadcast_to(put_in, Shape(std::move(extents))),
                      part_of(x.array, dim, place, n)},
                     dim);
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

Array packbits(const Operand& x, int axis) {
  const Call call("packbits", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const Array bits = as_bits(x.array, dim);
  auto extents = bits.shape().vector();
  std::vector<std::pair<int, int>> widths(extents.size(), {0, 0});
  widths.back().second = static_cast<int>((8 - extents.back() % 8) % 8);
  extents.back() = (extents.back() + 7) / 8;
  extents.push_back(8);
  const Array grouped = bitwise_left_shift(reshape(pad(bits, widths), Shape(std::move(extents))), shifts());
  return moveaxis(astype(sum(grouped, -1), uint8), -1, dim);
}
Array unpackbits(const Operand& x, int axis) {
  const Call call("unpackbits", x.where);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  if (x.array.dtype() != uint8)
    throw DtypeError(call_text() + ": bytes of " + name(x.array.dtype()) + "; it takes uint8");
  const Array bytes = expand_dims(moveaxis(x, dim, -1), x.array.ndim());
  const Array bits = bitwise_and(bitwise_right_shift(bytes, shifts()), astype(1, uint8));
  auto extents = x.array.shape().vector();
  std::rotate(extents.begin() + dim, extents.begin() + dim + 1, extents.end());
  extents.back() *= 8;
  return moveaxis(reshape(bits, Shape(std::move(extents))), -1, dim);
}

}  // namespace tessera
