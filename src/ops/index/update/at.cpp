// x.at(part).set(v) and related updates. Without index arrays v replaces its box, one exchange of v alone;
// with them it is a scatter.
#include <tessera/ops/reproducible.hpp>

#include <tessera/detail/loops.hpp>
#include <tessera/ops/sized.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/gather.hpp"
#include "ops/index/static_index.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace {

// The remap with x outside the box, v inside. The pieces of x are the slabs below and above the box, dim by
// dim:
//   +-----------+
//   |     0     |        0, 1: dim 0 below and above
//   |---+---+---|        2, 3: dim 1 below and above, in the rows of the box
//   | 2 | v | 3 |
//   |---+---+---|
//   |     1     |
//   +-----------+
Array set_box(const Array& x, const ParsedIndex& p, const Array& v) {
  const Shape& shape = x.shape();
  RemapParams params{shape, {}, {0, 0, true}, {}, output_of(x).sharding};
  Box box;
  RemapPiece inside{1, {}, {}, {}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto n = p.count[d];
    const bool flipped = p.step[d] < 0;
    const auto first = flipped ? p.start[d] - (n - 1) : p.start[d];
    box.push_back({first, first + n});
    inside.offset.push_back(flipped ? p.start[d] : -first);
    inside.step.push_back(flipped ? -1 : 1);
  }
  inside.to = box;
  Box rest = whole_box(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (const Range slab : {Range{0, box[d].start}, Range{box[d].stop, shape[d]}}) {
      RemapPiece outside = whole_piece(0, shape, std::vector<std::int64_t>(shape.size(), 0));
      outside.to = rest;
      outside.to[d] = slab;
      if (box_elements(outside.to) > 0) params.pieces.push_back(std::move(outside));
    }
    rest[d] = box[d];
  }
  params.pieces.push_back(std::move(inside));
  return remap(std::move(params), {x, v});
}

// Replaces the static part of x by v, which broadcasts to it.
Array set_static(const Array& x, const ParsedIndex& p, const Array& v) {
  const Array part = reshape(broadcast_to(cast_to(v, x.dtype()), p.shape), p.count);
  if (part.size() == 0) return x;
  const bool is_box =
      std::all_of(p.step.begin(), p.step.end(), [](std::int64_t s) { return s == 1 || s == -1; });
  if (is_box && p.takes_everything) return output_of(x).sharding ? set_box(x, p, part) : part;
  if (is_box) return set_box(x, p, part);
  // For steps other than 1: v is spread over x's shape and selected at the indexed positions.
  const auto layout = output_of(x).sharding;
  const Array chosen = unslice(ones(p.count, bool_), p.start, p.step, x.shape(), std::nullopt);
  return tessera::where(chosen, unslice(part, p.start, p.step, x.shape(), layout), x);
}

Shape gathered_shape(const Shape& y, const ParsedIndex& p) {
  std::vector<std::int64_t> extents(y.begin(), y.begin() + p.arrays_at);
  const Shape& indices = p.arrays[0].shape();
  extents.insert(extents.end(), indices.begin(), indices.end());
  extents.insert(extents.end(), y.begin() + p.arrays_at + static_cast<int>(p.arrays.size()), y.end());
  return Shape(std::move(extents));
}

std::int64_t bytes_where_split(const Array& x, int from, int count) {
  const auto& layout = output_of(x).sharding;
  if (!layout) return 0;
  const auto axes = layout->dim_axes(x.ndim());
  const bool split =
      std::any_of(axes.begin() + from, axes.begin() + from + count, [](const auto& a) { return !a.empty(); });
  return split ? x.nbytes() : 0;
}

// Whether to add by parts of a list that is split over ranks: each rank adds its part of the list into zeros,
// and the sums are combined. Chosen if that moves less than replicating the list: 10^6 values into 10 bins
// move 10 sums.
bool adds_up_by_parts(const Array& y, const std::vector<Array>& indices, const Array& updates, int first) {
  if (is_reproducible()) return false;  // values are added one after the other, in the order of the list
  std::int64_t list_bytes = bytes_where_split(updates, first, indices[0].ndim());
  for (const auto& i : indices) list_bytes += bytes_where_split(i, 0, i.ndim());
  return list_bytes > 2 * y.nbytes();  // an all-reduce moves its result about twice
}

Array scatter_into(const std::string& op, const Array& y, const std::vector<Array>& indices,
                   const Array& updates, int first) {
  if (op == "add" && !is_bool(y.dtype()) && adds_up_by_parts(y, indices, updates, first))
    return y + scatter_add_zeros(y.shape(), indices, updates, first, OutOfRange::drop);
  return scatter(op, y, indices, updates, first, OutOfRange::drop);
}

Array scatter_at(const std::string& op, const Array& x, const ParsedIndex& p, const Array& v) {
  const auto order = arrays_in_place(p);
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int>(i);
  const Array y = transpose(static_slice(x, p), order);
  const Array updates = broadcast_to(cast_to(v, x.dtype()), gathered_shape(y.shape(), p));
  const Array updated = transpose(scatter_into(op, y, p.arrays, updates, p.arrays_at), back);
  return p.takes_everything ? reshape(updated, x.shape()) : set_static(x, p, updated);
}

// The mask with trailing dims of size 1, so that it broadcasts to x; nullopt if the index is not a mask.
std::optional<Array> mask_of(const Array& x, const std::vector<IndexPart>& parts) {
  if (parts.size() != 1 || parts[0].kind != IndexPart::Kind::array || !parts[0].array.node() ||
      !is_bool(parts[0].array.dtype()))
    return std::nullopt;
  const Array mask = parts[0].array.ndim() > 0 ? fitted_mask(x, parts[0].array, 0) : parts[0].array;
  return reshape(mask, with_ones(mask.shape(), x.shape().size()));
}

// Whether x.at(mask).set(values) has one slice per chosen element, in order, as in NumPy.
bool brings_a_slice_for_each(const Array& x, const Array& mask, const Array& v) {
  return v.ndim() == x.ndim() - mask.ndim() + 1 && v.shape()[0] != 1;
}
ParsedIndex places_of(const Array& x, const Array& mask, const Array& v, std::source_location where) {
  if (detail::is_unknown(mask))
    throw ArgumentError(call_text() +
                        ": how many elements the mask chooses is not known while a function is traced, "
                        "so that the " +
                        std::to_string(v.shape()[0]) +
                        " values find no places; write where(mask, values, x) with values of x's shape");
  std::vector<IndexPart> parts;
  for (auto& places : nonzero(Operand(mask, where))) parts.emplace_back(std::move(places));
  const auto chosen = parts[0].array.size();
  if (chosen != v.shape()[0])
    throw ShapeError(call_text() + ": the mask chooses " + std::to_string(chosen) + " of " +
                     to_string(mask.shape()) + ", but there are " + std::to_string(v.shape()[0]) +
                     " values; give one for each, or one for all");
  return parse_index(x.shape(), std::move(parts));
}

// Reads, modifies and writes the indexed elements; `scatter_op` is the equivalent scatter op.
template <class Modify> Array update(const Array& x, const std::vector<IndexPart>& parts, const Operand& v,
                                     const char* scatter_op, Modify modify) {
  check_usable(x);
  check_usable(v.array);
  if (is_complex(v.array.dtype()) && !is_complex(x.dtype()))
    throw DtypeError(call_text() + ": complex values do not fit into an array of " + name(x.dtype()) +
                     "; take real(v), or make x complex first");
  const Array value = cast_to(v.array, x.dtype());
  if (const auto mask = mask_of(x, parts)) {
    if (brings_a_slice_for_each(x, parts[0].array, value))
      return scatter_at(scatter_op, x, places_of(x, parts[0].array, value, v.where), value);
    return tessera::where(*mask, cast_to(modify(x, value), x.dtype()), x);
  }
  const auto p = parse_index(x.shape(), parts);
  if (!p.arrays.empty()) return scatter_at(scatter_op, x, p, value);
  const std::string set = "set";
  return set_static(x, p, scatter_op == set ? value : cast_to(modify(static_slice(x, p), value), x.dtype()));
}

}  // namespace

Array At::get() const {
  const Call call("x.at", where_);
  return index(x_, parts_);
}
Array At::set(const Operand& v) const {
  const Call call("x.at", v.where);
  return update(x_, parts_, v, "set", [](const Operand&, const Array& b) { return b; });
}
Array At::add(const Operand& v) const {
  const Call call("x.at", v.where);
  return update(x_, parts_, v, "add", [](const Operand& a, const Array& b) { return tessera::add(a, b); });
}
Array At::subtract(const Operand& v) const {
  const Call call("x.at", v.where);
  return add(negative(v));
}
Array At::multiply(const Operand& v) const {
  const Call call("x.at", v.where);
  return update(x_, parts_, v, "multiply",
                [](const Operand& a, const Array& b) { return tessera::multiply(a, b); });
}
Array At::divide(const Operand& v) const {
  const Call call("x.at", v.where);
  const bool has_arrays = std::any_of(parts_.begin(), parts_.end(), [](const IndexPart& part) {
    return part.kind == IndexPart::Kind::array;
  });
  if (!has_arrays || mask_of(x_, parts_))
    return update(x_, parts_, v, "divide",
                  [](const Operand& a, const Array& b) { return tessera::divide(a, b); });
  return cast_to(x_ / At(ones_like(x_), parts_).multiply(v), x_.dtype());
}
Array At::min(const Operand& v) const {
  const Call call("x.at", v.where);
  return update(x_, parts_, v, "min", [](const Operand& a, const Array& b) { return minimum(a, b); });
}
Array At::max(const Operand& v) const {
  const Call call("x.at", v.where);
  return update(x_, parts_, v, "max", [](const Operand& a, const Array& b) { return maximum(a, b); });
}

}  // namespace tessera
