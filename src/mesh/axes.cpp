#include "mesh/axes.hpp"

#include "mesh/mesh_impl.hpp"

namespace tessera {

std::int64_t devices_along(const Mesh& mesh, const MeshAxes& axes) {
  const auto& sizes = mesh.axis_sizes();
  std::int64_t devices = 1;
  for (const int a : axes) devices *= sizes[a];
  return devices;
}

std::vector<int> group_along(const Mesh& mesh, const MeshAxes& axes, int me) {
  const auto& impl = *mesh.identity();
  int base = impl.position_of(me);
  for (const int a : axes) base -= base / impl.strides[a] % impl.sizes[a] * impl.strides[a];
  std::vector<int> group(devices_along(mesh, axes));
  for (std::size_t i = 0; i < group.size(); ++i) {
    int rest = static_cast<int>(i), position = base;
    for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
      position += rest % impl.sizes[*a] * impl.strides[*a];
      rest /= impl.sizes[*a];
    }
    group[i] = impl.ids[position];
  }
  return group;
}

}  // namespace tessera
