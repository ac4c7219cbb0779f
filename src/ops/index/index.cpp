// x(0, slice(), i): a slice, which is one exchange of boxes, then a gather by the index arrays.
#include <algorithm>
#include <numeric>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/gather.hpp"
#include "ops/index/parse.hpp"
#include "ops/index/static_index.hpp"

namespace tessera {

Array static_slice(const Array& x, const ParsedIndex& p) {
  Array y = x;
  if (!p.takes_everything) {
    auto params = slice_params(p.start, p.step, p.count);
    params.unsplit = p.integer_dims;
    // The reshape below could not keep the split of a dim of size 1 either.
    for (int d = 0; d < p.count.ndim() && !(p.shape == p.count); ++d)
      if (p.count[d] == 1) params.unsplit.push_back(d);
    y = remap(RemapName::slice, std::move(params), {x});
  }
  return reshape(y, p.shape);
}

std::vector<int> arrays_in_place(const ParsedIndex& p) {
  std::vector<int> order;
  for (int d = 0; d < p.shape.ndim(); ++d)
    if (!std::binary_search(p.array_dims.begin(), p.array_dims.end(), d)) order.push_back(d);
  order.insert(order.begin() + p.arrays_at, p.array_dims.begin(), p.array_dims.end());
  return order;
}

Array index(const Array& x, std::vector<IndexPart> parts, std::source_location where) {
  const Call call("index", where);
  check_usable(x);
  const auto p = parse_index(x.shape(), std::move(parts));
  const Array y = static_slice(x, p);
  if (p.arrays.empty()) return y;
  return gather(transpose(y, arrays_in_place(p)), p.arrays, p.arrays_at, OutOfRange::clamp);
}

Array take(const Operand& x, const Operand& indices, int axis) {
  const Call call("take", x.where);
  check_usable(x.array);
  check_usable(indices.array);
  const int d = checked_dim(axis, x.array.ndim());
  std::vector<IndexPart> parts(d, IndexPart(slice()));
  parts.emplace_back(indices.array);
  const auto p = parse_index(x.array.shape(), std::move(parts));
  return gather(x.array, p.arrays, d, OutOfRange::clamp);
}

}  // namespace tessera
