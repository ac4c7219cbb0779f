// Slices whose start is a value: along each dim the positions are an index array, so that ranks fetch only
// the elements of their block of the result.
#include <tessera/control/lax.hpp>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

void check_starts(const Array& x, const std::vector<Array>& starts, const Shape& sizes) {
  if (starts.size() != x.shape().size() || sizes.size() != x.shape().size())
    throw ShapeError(call_text() + ": " + std::to_string(starts.size()) + " starts and " +
                     std::to_string(sizes.size()) + " sizes for an array of shape " + to_string(x.shape()) +
                     "; give one for each dimension");
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    check_usable(starts[d]);
    if (!is_integer(starts[d].dtype()) || starts[d].ndim() != 0)
      throw DtypeError(call_text() + ": start " + std::to_string(d) + " is " + describe(starts[d]) +
                       "; it must be an integer scalar");
    if (sizes[d] < 0 || sizes[d] > x.shape()[d])
      throw ShapeError(call_text() + ": a size of " + std::to_string(sizes[d]) +
                       " does not fit into dimension " + std::to_string(d) + " of shape " +
                       to_string(x.shape()));
  }
}
Array inside(const Array& start, std::int64_t extent, std::int64_t size) {
  return clip(astype(start, int64), std::int64_t{0}, extent - size);
}
Array counted(std::int64_t n) { return arange_of(std::int64_t{0}, n, std::int64_t{1}, int64); }

}  // namespace

Array dynamic_slice(const Operand& x, const std::vector<Array>& starts, Shape sizes) {
  const Call call("dynamic_slice", x.where);
  check_usable(x.array);
  check_starts(x.array, starts, sizes);
  Array y = x.array;
  for (int d = 0; d < y.ndim(); ++d)
    if (sizes[d] < y.shape()[d])
      y = take(y, inside(starts[d], y.shape()[d], sizes[d]) + counted(sizes[d]), d);
  return y;
}

Array dynamic_update_slice(const Operand& x, const Operand& update, const std::vector<Array>& starts) {
  const Call call("dynamic_update_slice", x.where);
  check_usable(x.array);
  check_usable(update.array);
  const Shape &shape = x.array.shape(), &sizes = update.array.shape();
  check_starts(x.array, starts, sizes);
  if (update.array.size() == 0) return x.array;
  Array values = cast_to(update.array, x.array.dtype());
  Array is_replaced = ones({}, bool_);
  for (int d = 0; d < shape.ndim(); ++d) {
    if (sizes[d] == shape[d]) continue;
    const Array from = counted(shape[d]) - inside(starts[d], shape[d], sizes[d]);
    values = take(values, clip(from, std::int64_t{0}, sizes[d] - 1), d);
    std::vector<std::int64_t> aligned(shape.size(), 1);
    aligned[d] = shape[d];
    is_replaced = is_replaced & reshape((from >= 0) & (from < sizes[d]), Shape(std::move(aligned)));
  }
  return where(is_replaced, values, x.array);
}

}  // namespace tessera
