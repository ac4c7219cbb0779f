// Functions that arrange existing elements: joining, rotating, diagonals.
#include <tessera/ops/arrange.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const Array& usable(const Array& x) {
  check_usable(x);
  return x;
}
Shape with_ones(const Shape& shape, int before, int after) {
  std::vector<std::int64_t> extents(before, 1);
  extents.insert(extents.end(), shape.begin(), shape.end());
  extents.insert(extents.end(), after, 1);
  return Shape(std::move(extents));
}
Array two_dims(const Array& x) {
  return usable(x).ndim() < 2 ? reshape(x, with_ones(x.shape(), 2 - x.ndim(), 0)) : x;
}
Array three_dims(const Array& x) {
  const Array y = two_dims(x);
  return y.ndim() < 3 ? reshape(y, with_ones(y.shape(), 0, 1)) : y;
}
void check_dims(const Array& x, int least) {
  if (usable(x).ndim() < least)
    throw ShapeError(call_text() + ": the array has shape " + to_string(x.shape()) +
                     "; it must have at least " + std::to_string(least) +
                     (least == 1 ? " dimension" : " dimensions"));
}

}  // namespace

Array atleast_1d(const Operand& x) {
  const Call call("atleast_1d", x.where);
  return usable(x.array).ndim() < 1 ? reshape(x, Shape{1}) : x.array;
}
Array atleast_2d(const Operand& x) {
  const Call call("atleast_2d", x.where);
  return two_dims(x.array);
}
Array atleast_3d(const Operand& x) {
  const Call call("atleast_3d", x.where);
  return three_dims(x.array);
}
std::vector<Array> broadcast_arrays(const std::vector<Array>& arrays, std::source_location where) {
  const Call call("broadcast_arrays", where);
  Shape common;
  for (const auto& x : arrays) common = broadcast_shapes(common, usable(x).shape());
  std::vector<Array> result;
  for (const auto& x : arrays) result.push_back(broadcast_to(x, common));
  return result;
}
Array matrix_transpose(const Operand& x) {
  const Call call("matrix_transpose", x.where);
  check_dims(x.array, 2);
  return swapaxes(x, -2, -1);
}
Array permute_dims(const Operand& x, std::vector<int> order) {
  const Call call("permute_dims", x.where);
  return transpose(x, std::move(order));
}
std::vector<Array> unstack(const Operand& x, int axis) {
  const Call call("unstack", x.where);
  const Array first = moveaxis(usable(x.array), checked_dim(axis, x.array.ndim()), 0);
  std::vector<Array> result;
  for (std::int64_t i = 0; i < first.shape()[0]; ++i) result.push_back(first(i));
  return result;
}

Array concat(std::vector<Array> arrays, int axis, std::source_location where) {
  const Call call("concat", where);
  return concatenate(std::move(arrays), axis);
}
Array vstack(std::vector<Array> arrays, std::source_location where) {
  const Call call("vstack", where);
  for (auto& x : arrays) x = two_dims(x);
  return concatenate(std::move(arrays), 0);
}
Array hstack(std::vector<Array> arrays, std::source_location where) {
  const Call call("hstack", where);
  for (auto& x : arrays) x = atleast_1d(x);
  const int axis = !arrays.empty() && arrays[0].ndim() == 1 ? 0 : 1;
  return concatenate(std::move(arrays), axis);
}
Array dstack(std::vector<Array> arrays, std::source_location where) {
  const Call call("dstack", where);
  for (auto& x : arrays) x = three_dims(x);
  return concatenate(std::move(arrays), 2);
}
Array column_stack(std::vector<Array> arrays, std::source_location where) {
  const Call call("column_stack", where);
  for (auto& x : arrays)
    if (usable(x).ndim() < 2) x = reshape(x, Shape{x.size(), 1});
  return concatenate(std::move(arrays), 1);
}
Array block(const std::vector<std::vector<Array>>& rows, std::source_location where) {
  const Call call("block", where);
  std::vector<Array> joined;
  for (const auto& row : rows) {
    std::vector<Array> parts;
    for (const auto& x : row) parts.push_back(two_dims(x));
    joined.push_back(concatenate(std::move(parts), -1));
  }
  return concatenate(std::move(joined), -2);
}
Array append(const Operand& x, const Operand& values, int axis) {
  const Call call("append", x.where);
  return concatenate({x.array, values.array}, axis);
}

Array append(const Operand& x, const Operand& values) {
  const Call call("append", x.where);
  check_usable(x.array);
  check_usable(values.array);
  return concatenate({reshape(x, Shape{-1}), reshape(values, Shape{-1})}, 0);
}

Array fliplr(const Operand& x) {
  const Call call("fliplr", x.where);
  check_dims(x.array, 2);
  return flip(x, 1);
}
Array flipud(const Operand& x) {
  const Call call("flipud", x.where);
  check_dims(x.array, 1);
  return flip(x, 0);
}
Array rot90(const Operand& x, int k, std::pair<int, int> axes) {
  const Call call("rot90", x.where);
  check_dims(x.array, 2);
  const int a = checked_dim(axes.first, x.array.ndim()), b = checked_dim(axes.second, x.array.ndim());
  if (a == b) throw IndexError(call_text() + ": axis " + std::to_string(a) + " is named twice; name two");
  switch (((k % 4) + 4) % 4) {
    case 1: return swapaxes(flip(x, b), a, b);
    case 2: return flip(x, {a, b});
    case 3: return flip(swapaxes(x, a, b), b);
    default: return x.array;
  }
}

Array tri(std::int64_t n, std::int64_t m, int k, Dtype dtype, std::source_location where) {
  const Call call("tri", where);
  return tril(ones({n, m < 0 ? n : m}, dtype), k);
}
Array vander(const Operand& x, std::int64_t n, bool increasing) {
  const Call call("vander", x.where);
  if (usable(x.array).ndim() != 1)
    throw ShapeError(call_text() + ": the array has shape " + to_string(x.array.shape()) +
                     "; it must have one dimension");
  const auto columns = n < 0 ? x.array.size() : n;
  const Array values = is_bool(x.array.dtype()) ? astype(x, int32) : x.array;
  const Array rising =
      cumprod(concatenate({ones({values.size(), std::min<std::int64_t>(columns, 1)}, values.dtype()),
                           broadcast_to(expand_dims(values, 1),
                                        Shape{values.size(), std::max<std::int64_t>(columns - 1, 0)})},
                          1),
              1, {.dtype = values.dtype()});
  return increasing ? rising : flip(rising, 1);
}

static bool same_shape(const Operand& a, const Operand& b) {
  return usable(a.array).shape() == usable(b.array).shape();
}
Array array_equal(const Operand& a, const Operand& b, bool equal_nan) {
  const Call call("array_equal", a.where);
  if (!same_shape(a, b)) return false;
  const Array same = equal(a, b);
  return all(equal_nan ? same | (isnan(a) & isnan(b)) : same);
}
Array array_equiv(const Operand& a, const Operand& b) {
  const Call call("array_equiv", a.where);
  const Shape &s = usable(a.array).shape(), &t = usable(b.array).shape();
  const auto ndim = std::max(s.size(), t.size());
  for (std::size_t i = 1; i <= ndim; ++i) {
    const auto m = i <= s.size() ? s[s.size() - i] : 1, n = i <= t.size() ? t[t.size() - i] : 1;
    if (m != n && m != 1 && n != 1) return false;
  }
  return all(equal(a, b));
}

}  // namespace tessera
