// The type-erased half of control/lax.hpp.
#include <tessera/control/lax.hpp>

#include "ops/build.hpp"

namespace tessera::detail {

void check_branch_index(const Array& index, std::source_location where) {
  const Call call("switch_", where);
  check_usable(index);
  if (!is_integer(index.dtype()) || index.ndim() != 0)
    throw DtypeError(call_text() + ": the index is " + describe(index) + "; it must be an integer scalar");
}

std::int64_t leading_extent(const std::vector<Array>& leaves, int axis, const char* name,
                            std::source_location where) {
  const Call call(name, where);
  if (leaves.empty()) throw ArgumentError(call_text() + ": the tree holds no arrays");
  std::int64_t extent = -1;
  for (const auto& x : leaves) {
    check_usable(x);
    const auto n = x.shape()[checked_dim(axis, x.ndim())];
    if (extent >= 0 && n != extent)
      throw ShapeError(call_text() + ": the extents along axis " + std::to_string(axis) +
                       " differ: " + describe(leaves[0]) + " and " + describe(x));
    extent = n;
  }
  return extent;
}

Array part_along(const Array& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  std::vector<IndexPart> parts(checked_dim(axis, x.ndim()), IndexPart(slice()));
  parts.emplace_back(slice(start, stop, step));
  return index(x, std::move(parts));
}

// Interleaves even and odd elements along a dim; an even element without an odd one comes last.
Array interleaved(const Array& even, const Array& odd, int axis) {
  const int dim = checked_dim(axis, even.ndim());
  const auto pairs = odd.shape()[dim], places = even.shape()[dim];
  Shape extents = odd.shape();
  extents[dim] = 2 * pairs;
  const Array paired = reshape(stack({part_along(even, dim, 0, pairs, 1), odd}, dim + 1), extents);
  return places == pairs ? paired : concatenate({paired, part_along(even, dim, pairs, places, 1)}, dim);
}

}  // namespace tessera::detail
