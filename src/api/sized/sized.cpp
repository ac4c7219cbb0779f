// Results whose size depends on values: the elements that a mask selects. One layer above the ops, because
// the size is read.
#include "api/sized/sized.hpp"

#include <tessera/detail/loops.hpp>
#include <tessera/ops/statistics.hpp>

#include <algorithm>
#include <limits>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/position_dtype.hpp"

namespace tessera {

std::int64_t size_of_chosen(const Array& mask, const SizedOptions& options, std::source_location where) {
  if (options.size) {
    if (*options.size < 0)
      throw ArgumentError(call_text() + ": the size " + std::to_string(*options.size) + " is negative");
    return *options.size;
  }
  if (detail::is_unknown(mask))
    throw ArgumentError(
        call_text() +
        ": the size of the result depends on values, which are not known while a function is "
        "traced. Say how large it may get, {.size = n}, or keep the shape with where(mask, a, b)");
  const bool fits_int32 =
      mask.size() <= std::numeric_limits<std::int32_t>::max();  // the dtype of count_nonzero
  return item<std::int64_t>(fits_int32 ? count_nonzero(mask) : sum(mask, {}, int64), where);
}

Array places(std::int64_t n) { return arange_of(std::int64_t{0}, n, std::int64_t{1}, position_dtype(n)); }
Array flattened(const Array& x) { return x.ndim() == 1 ? x : reshape(x, Shape{x.size()}); }
Array as_mask(const Array& x) { return is_bool(x.dtype()) ? x : not_equal(x, 0); }

ScalarValue fill_of(const SizedOptions& options, Dtype dtype) {
  const double value = options.fill_value.value_or(0);
  if (is_inexact(dtype)) return {value, 0, false};
  return {0, static_cast<std::int64_t>(value), true};
}

namespace {

Array chosen_places(const Array& mask, const SizedOptions& options, std::source_location where) {
  return compress_rows(mask, places(mask.size()), size_of_chosen(mask, options, where),
                       fill_of(options, int64));
}

// Converts row-major positions to one index per dim.
std::vector<Array> unravelled(Array at, const Shape& shape) {
  std::vector<Array> result(shape.size());
  for (std::size_t d = shape.size(); d-- > 1;) {
    const std::int64_t n = std::max<std::int64_t>(shape[d], 1);
    result[d] = remainder(at, n);
    at = floor_divide(at, n);
  }
  result[0] = at;
  return result;
}

}  // namespace

std::vector<Array> nonzero(const Operand& x, SizedOptions options) {
  const Call call("nonzero", x.where);
  check_usable(x.array);
  const Array mask = flattened(as_mask(x.array));
  if (x.array.ndim() < 2) return {chosen_places(mask, options, x.where)};
  const Array count = sum(mask, {}, int64);
  const Array at = chosen_places(mask, {options.size, {}}, x.where);
  auto result = unravelled(at, x.array.shape());
  if (options.size && options.fill_value)
    for (auto& dim : result)
      dim = where(places(at.size()) < count, dim, static_cast<std::int64_t>(*options.fill_value));
  return result;
}

Array flatnonzero(const Operand& x, SizedOptions options) {
  const Call call("flatnonzero", x.where);
  check_usable(x.array);
  return chosen_places(flattened(as_mask(x.array)), options, x.where);
}

Array argwhere(const Operand& x, SizedOptions options) {
  const Call call("argwhere", x.where);
  const auto found = nonzero(x, options);
  if (x.array.ndim() == 0) return zeros({found[0].size(), 0}, found[0].dtype());  // a place has no numbers
  return stack(found, 1);
}

Array compress(const Operand& condition, const Operand& x, int axis, SizedOptions options) {
  const Call call("compress", condition.where);
  check_usable(condition.array);
  check_usable(x.array);
  const int dim = checked_dim(axis, x.array.ndim());
  const auto extent = x.array.shape()[dim];
  if (condition.array.ndim() != 1 || condition.array.size() > extent)
    throw ShapeError(call_text() + ": the condition has shape " + to_string(condition.array.shape()) +
                     "; it must have one dimension, and at most the " + std::to_string(extent) +
                     " elements of axis " + std::to_string(dim) + " of shape " + to_string(x.array.shape()));
  Array mask = as_mask(condition.array);
  const auto missing = extent - mask.size();
  if (missing > 0) mask = concatenate({mask, zeros({missing}, bool_)}, 0);
  const Array rows = dim == 0 ? x.array : moveaxis(x.array, dim, 0);
  const Array chosen = compress_rows(mask, rows, size_of_chosen(mask, options, condition.where),
                                     fill_of(options, rows.dtype()));
  return dim == 0 ? chosen : moveaxis(chosen, 0, dim);
}

Array compress(const Operand& condition, const Operand& x, SizedOptions options) {
  const Call call("compress", condition.where);
  check_usable(x.array);
  return compress(condition, flattened(x.array), 0, options);
}

Array extract(const Operand& condition, const Operand& x, SizedOptions options) {
  const Call call("extract", condition.where);
  check_usable(condition.array);
  check_usable(x.array);
  if (condition.array.shape() != x.array.shape())
    throw ShapeError(call_text() + ": the condition has shape " + to_string(condition.array.shape()) +
                     ", the array " + to_string(x.array.shape()) + "; both must have the same shape");
  return compress(flattened(condition.array), flattened(x.array), 0, options);
}

Array bincount(const Operand& x) {
  const Call call("bincount", x.where);
  check_usable(x.array);
  if (detail::is_unknown(x.array))
    throw ArgumentError(
        call_text() +
        ": the length of the result depends on values, which are not known while a function is "
        "traced; say it, bincount(x, length)");
  if (x.array.size() == 0) return bincount(x, 0);
  const auto ends = to_vector<std::int64_t>(stack({min(x), max(x)}), x.where);
  if (ends[0] < 0)
    throw ArgumentError(call_text() + ": the values begin at " + std::to_string(ends[0]) +
                        "; counted are numbers from 0 up. Give a length to leave out the negative ones");
  return bincount(x, ends[1] + 1);
}

}  // namespace tessera
