#include "mesh/groups.hpp"

#include <cstdint>

namespace tessera {

std::vector<int> group_along(const Mesh& mesh, const std::vector<int>& axes, int me) {
  const auto& sizes = mesh.axis_sizes();
  const auto& ids = mesh.device_ids();
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t a = sizes.size(); a-- > 1;) strides[a - 1] = strides[a] * sizes[a];
  std::int64_t base = mesh.position(me), count = 1;
  for (const int a : axes) {
    const auto axis = static_cast<std::size_t>(a);
    base -= base / strides[axis] % sizes[axis] * strides[axis];
    count *= sizes[axis];
  }
  std::vector<int> group;
  group.reserve(count);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, position = base;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const auto axis = static_cast<std::size_t>(axes[k]);
      position += rest % sizes[axis] * strides[axis];
      rest /= sizes[axis];
    }
    group.push_back(ids[position]);
  }
  return group;
}

}  // namespace tessera
