// Choosing between arrays, sorting by several keys, and conversion of indices in a shape.
#include <tessera/ops/arrange.hpp>

#include <limits>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/known.hpp"
#include "ops/sort/select.hpp"
#include "ops/sort/sort_by_key.hpp"

namespace tessera {

Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices,
             const Operand& otherwise, std::source_location where) {
  const Call call("select", where);
  if (conditions.size() != choices.size() || conditions.empty())
    throw ArgumentError(call_text() + ": " + std::to_string(conditions.size()) + " conditions and " +
                        std::to_string(choices.size()) + " choices; give a choice for each condition");
  Array result = otherwise.array;
  for (std::size_t i = conditions.size(); i-- > 0;)
    result = tessera::where(conditions[i], choices[i], result);
  return result;
}

Array choose(const Operand& indices, const std::vector<Array>& choices, const std::string& mode) {
  const Call call("choose", indices.where);
  check_usable(indices.array);
  if (choices.empty()) throw ArgumentError(call_text() + ": there are no choices");
  if (mode != "clip" && mode != "wrap")
    throw ArgumentError(call_text() + ": there is no mode '" + mode + "'; take clip or wrap");
  if (!is_integer(indices.array.dtype()))
    throw DtypeError(call_text() + ": the indices have dtype " + name(indices.array.dtype()) +
                     "; they must be integers");
  const auto n = static_cast<std::int64_t>(choices.size());
  const Array at = mode == "wrap" ? remainder(indices, n) : clip(indices, std::int64_t{0}, n - 1);
  Array result = choices.back();
  for (std::int64_t i = n - 1; i-- > 0;) result = where(at == i, choices[i], result);
  return n == 1 ? broadcast_to(result, broadcast_shapes(result.shape(), at.shape())) : result;
}

// Sorts from the least to the most important key; each sort is stable.
Array lexsort(const std::vector<Array>& keys, int axis, std::source_location where) {
  const Call call("lexsort", where);
  if (keys.empty()) throw ArgumentError(call_text() + ": there are no keys");
  for (const auto& key : keys) {
    check_usable(key);
    if (key.shape() != keys[0].shape())
      throw ShapeError(call_text() + ": the keys have shapes " + to_string(keys[0].shape()) + " and " +
                       to_string(key.shape()) + "; all must have the same shape");
  }
  Array order = argsort(keys[0], axis);
  for (std::size_t k = 1; k < keys.size(); ++k)
    order = take_along_axis(order, argsort(take_along_axis(keys[k], order, axis), axis), axis);
  return order;
}

namespace {
void check_kth(const Operand& x, int kth, int axis) {
  check_usable(x.array);
  const auto n = x.array.shape()[checked_dim(axis, x.array.ndim())];
  if (kth < -n || kth >= n)
    throw IndexError(call_text() + ": kth " + std::to_string(kth) +
                     " is out of range for an axis of extent " + std::to_string(n));
}

// Shorter lines are sorted as quickly as their element at kth is found.
constexpr std::int64_t selected_from = 1 << 12;
bool is_worth_selection(const Array& x, int axis) {
  const bool has_selection = x.dtype() == float32 || x.dtype() == float64;
  return has_selection && x.shape()[checked_dim(axis, x.ndim())] >= selected_from;
}

// For every element of the last dim: 0 before the element that a sort puts at kth, 1 equal to it, 2 after it.
// A NaN equals a NaN and is after all numbers.
Array sides_of(const Array& x, int kth) {
  const auto n = x.shape().back();
  const Array pivot = elements_of_sorted(x, {kth < 0 ? kth + n : kth});
  const Array is_not_before = (x >= pivot) | isnan(x), is_after = (!(x <= pivot)) & (!isnan(pivot));
  return astype(is_not_before, uint8) + astype(is_after, uint8);
}
}  // namespace

Array partition(const Operand& x, int kth, int axis) {
  const Call call("partition", x.where);
  check_kth(x, kth, axis);
  if (!is_worth_selection(x.array, axis)) return sort(x, axis);
  const Array lines = moveaxis(x, axis, -1);
  const Array sides = sides_of(lines, kth);
  return moveaxis(sort_by_key(sides, lines, Keys::sides).second, -1, axis);
}
Array argpartition(const Operand& x, int kth, int axis) {
  const Call call("argpartition", x.where);
  check_kth(x, kth, axis);
  if (!is_worth_selection(x.array, axis)) return argsort(x, axis);
  return moveaxis(sorted_positions(sides_of(moveaxis(x, axis, -1), kth)), -1, axis);
}

namespace {
// Numbers in which the places of a shape can be computed: 8 and 16 bits hold few of them, 32 not always.
Array wide_enough(const Array& numbers, const Shape& shape) {
  if (!is_integer(numbers.dtype()) || itemsize(numbers.dtype()) == 8) return numbers;
  const bool is_large = shape.elements() - 1 > std::numeric_limits<std::int32_t>::max();
  return cast_to(numbers, is_large || numbers.dtype() == uint32 ? int64 : int32);
}
}  // namespace

std::vector<Array> unravel_index(const Operand& places, Shape shape) {
  const Call call("unravel_index", places.where);
  check_usable(places.array);
  if (shape.ndim() == 0) throw ShapeError(call_text() + ": a shape without dimensions has no places");
  const auto size = shape.elements();
  check_known_indices(places.array, {0, size},
                      "the shape " + to_string(shape) + " has " + format_count(size, "element"),
                      "clip(indices, 0, " + std::to_string(size - 1) + ") brings them into it");
  Array rest = wide_enough(places.array, shape);
  std::vector<Array> result(shape.size());
  for (std::size_t d = shape.size(); d-- > 1;) {
    const auto n = std::max<std::int64_t>(shape[d], 1);
    result[d] = remainder(rest, n);
    rest = floor_divide(rest, n);
  }
  result[0] = rest;
  return result;
}

Array ravel_multi_index(const std::vector<Array>& numbers, Shape shape, std::source_location where) {
  const Call call("ravel_multi_index", where);
  if (numbers.size() != shape.size() || numbers.empty())
    throw ArgumentError(call_text() + ": " + std::to_string(numbers.size()) +
                        " arrays of numbers for the shape " + to_string(shape) +
                        "; give one for each dimension");
  for (std::size_t d = 0; d < shape.size(); ++d)
    check_known_indices(numbers[d], {0, shape[d]},
                        "dimension " + std::to_string(d) + " has the extent " + std::to_string(shape[d]),
                        "clip(indices, 0, " + std::to_string(shape[d] - 1) + ") brings them into it");
  Array place = wide_enough(numbers[0], shape);
  for (std::size_t d = 1; d < shape.size(); ++d) place = place * shape[d] + numbers[d];
  return place;
}

Array indices(Shape shape, Dtype dtype, std::source_location where) {
  const Call call("indices", where);
  std::vector<Array> rows;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> aligned(shape.size(), 1);
    aligned[d] = shape[d];
    rows.push_back(broadcast_to(
        reshape(arange_of(std::int64_t{0}, shape[d], std::int64_t{1}, dtype), Shape(aligned)), shape));
  }
  if (rows.empty()) return zeros({0}, dtype);
  return stack(std::move(rows), 0);
}

}  // namespace tessera
