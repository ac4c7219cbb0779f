// x(0, slice(), i): a slice, which is one exchange of boxes, followed by a gather by the index arrays.
#include <tessera/detail/loops.hpp>
#include <tessera/ops/sized.hpp>

#include <algorithm>
#include <numeric>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/gather.hpp"
#include "ops/index/parse.hpp"
#include "ops/index/static_index.hpp"
#include "ops/known.hpp"
#include "ops/left_out.hpp"

namespace tessera {

Array static_slice(const Array& x, const ParsedIndex& p) {
  Array y = x;
  if (!p.takes_everything || !may_leave_out(x)) {
    auto params = slice_params(p.start, p.step, p.count);
    params.unsplit = p.integer_dims;
    // A dim of size 1 loses its split, because the reshape below could not keep it.
    for (int d = 0; d < p.count.ndim() && !(p.shape == p.count); ++d)
      if (p.count[d] == 1) params.unsplit.push_back(d);
    y = remap(std::move(params), {x});
  }
  return y.shape() == p.shape && may_leave_out(y) ? y : reshape(y, p.shape);
}

std::vector<int> arrays_in_place(const ParsedIndex& p) {
  std::vector<int> order;
  for (int d = 0; d < p.shape.ndim(); ++d)
    if (!std::binary_search(p.array_dims.begin(), p.array_dims.end(), d)) order.push_back(d);
  order.insert(order.begin() + p.arrays_at, p.array_dims.begin(), p.array_dims.end());
  return order;
}

Array fitted_mask(const Array& x, const Array& mask, int first) {
  const auto& shape = x.shape();
  const auto matches = [](std::int64_t m, std::int64_t extent) { return m == extent || m == 0; };
  const bool fits = mask.ndim() > 0 && first >= 0 && first + mask.ndim() <= x.ndim() &&
                    std::equal(mask.shape().begin(), mask.shape().end(), shape.begin() + first, matches);
  if (!fits)
    throw IndexError(call_text() + ": the mask has shape " + to_string(mask.shape()) + ", the array " +
                     to_string(shape) +
                     "; a mask has the extents of the dimensions that it chooses from, here " +
                     "from dimension " + std::to_string(first) + ", or 0 in place of one");
  if (mask.size() > 0) return mask;
  const auto begin = shape.begin() + first;
  return zeros(Shape(std::vector<std::int64_t>(begin, begin + mask.ndim())), bool_);
}

namespace {

bool is_mask(const IndexPart& part) {
  return part.kind == IndexPart::Kind::array && part.array.node() && is_bool(part.array.dtype());
}

// The number of dims that the parts consume; newaxis and ellipsis consume none.
int dims_named(std::span<const IndexPart> parts) {
  int dims = 0;
  for (const auto& part : parts)
    if (is_mask(part))
      dims += part.array.ndim();
    else
      dims += part.kind != IndexPart::Kind::newaxis && part.kind != IndexPart::Kind::ellipsis;
  return dims;
}

// Replaces each mask by the positions that it chooses, one index array per dim.
std::vector<IndexPart> with_masks_as_places(const Array& x, const std::vector<IndexPart>& parts,
                                            std::source_location where) {
  std::vector<IndexPart> result;
  int first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == IndexPart::Kind::ellipsis)
      first = x.ndim() - dims_named(std::span(parts).subspan(i + 1));
    else
      first += dims_named(std::span(parts).subspan(i, 1));
    if (!is_mask(parts[i])) {
      result.push_back(parts[i]);
      continue;
    }
    const Array mask = fitted_mask(x, parts[i].array, first - parts[i].array.ndim());
    for (auto& places : nonzero(Operand(mask, where))) result.emplace_back(std::move(places));
  }
  return result;
}

// x(mask): the chosen slices are sent directly to their positions in the result.
Array chosen_by(const Array& x, const Array& mask, std::source_location where) {
  std::vector<std::int64_t> extents{mask.size()};
  extents.insert(extents.end(), x.shape().begin() + mask.ndim(), x.shape().end());
  return compress(Operand(reshape(mask, Shape{mask.size()}), where), reshape(x, Shape(std::move(extents))),
                  0);
}

}  // namespace

Array index(const Array& x, std::vector<IndexPart> parts, std::source_location where) {
  const Call call("index", where);
  check_usable(x);
  if (parts.size() == 1 && is_mask(parts[0])) return chosen_by(x, fitted_mask(x, parts[0].array, 0), where);
  if (std::any_of(parts.begin(), parts.end(), is_mask)) parts = with_masks_as_places(x, parts, where);
  const auto p = parse_index(x.shape(), std::move(parts));
  const Array y = static_slice(x, p);
  if (p.arrays.empty()) return y;
  return gather(transpose(y, arrays_in_place(p)), p.arrays, p.arrays_at, OutOfRange::clamp);
}

Array take_clamped(const Operand& x, const Operand& indices, int axis) {
  const Call call("take", x.where);
  check_usable(x.array);
  check_usable(indices.array);
  const int d = checked_dim(axis, x.array.ndim());
  std::vector<IndexPart> parts(d, IndexPart(slice()));
  parts.emplace_back(indices.array);
  const auto p = parse_index(x.array.shape(), std::move(parts));
  return gather(x.array, p.arrays, d, OutOfRange::clamp);
}

Array take(const Operand& x, const Operand& indices, int axis) {
  const Call call("take", x.where);
  check_usable(x.array);
  check_usable(indices.array);
  const int d = checked_dim(axis, x.array.ndim());
  const auto extent = x.array.shape()[d];
  if (!detail::is_unknown(x.array))
    check_known_indices(indices.array, {-extent, extent},
                        "dimension " + std::to_string(d) + " has the extent " + std::to_string(extent),
                        R"(take "clip", "wrap" or "fill" as mode, which say what such indices get)");
  return take_clamped(x, indices, axis);
}

Array take(const Operand& x, const Operand& indices) {
  const Call call("take", x.where);
  return take({ravel(x), x.where}, indices, 0);
}

}  // namespace tessera
