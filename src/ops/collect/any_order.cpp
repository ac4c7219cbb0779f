#include "ops/collect/any_order.hpp"

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

// Turns uneven blocks of several dims into blocks of the longest dim, split over all of their axes.
//
//   (5, 7) P(x, y) over 2 x 2     3x4 3x3     ->     P(-, (y, x))     5x2 5x2
//                                 2x4 2x3                             5x2 5x1
Array split_along_one_dim(const Array& x) {
  const auto& sharding = *output_of(x).sharding;
  auto dims = sharding.dim_axes(x.ndim());
  int split = 0, uneven = 0, longest = 0;
  for (int d = 0; d < x.ndim(); ++d) {
    const auto parts = devices_along(sharding.mesh(), dims[d]);
    split += parts > 1;
    uneven += x.shape()[d] % parts != 0;
    if (x.shape()[d] > x.shape()[longest]) longest = d;
  }
  if (split < 2 || uneven == 0) return x;
  MeshAxes all = std::exchange(dims[longest], {});
  for (auto& axes : dims) all.insert(all.end(), axes.begin(), axes.end()), axes.clear();
  dims[longest] = std::move(all);
  return device_put(x, Sharding::from_dim_axes(sharding.mesh(), dims));
}

}  // namespace

// Moves split dims to the front, each cut into (parts, block) if that is even: the merged dim is then
// contiguous on every rank.
Array in_any_order(const Array& given) {
  if (!output_of(given).sharding || given.node()->region) return reshape(given, Shape{-1});
  const Array x = split_along_one_dim(given);
  const auto& sharding = *output_of(x).sharding;
  const auto axes = sharding.dim_axes(x.ndim());
  std::vector<std::int64_t> extents;
  std::vector<int> blocks, others;
  for (int d = 0; d < x.ndim(); ++d) {
    const auto parts = devices_along(sharding.mesh(), axes[d]);
    if (parts > 1) blocks.push_back(static_cast<int>(extents.size()));
    const bool is_even = parts > 1 && x.shape()[d] % parts == 0;
    if (is_even) extents.push_back(parts);
    if (is_even || parts == 1) others.push_back(static_cast<int>(extents.size()));
    extents.push_back(is_even ? x.shape()[d] / parts : x.shape()[d]);
  }
  blocks.insert(blocks.end(), others.begin(), others.end());
  return reshape(transpose(reshape(x, Shape(std::move(extents))), std::move(blocks)), Shape{-1});
}

}  // namespace tessera
