// Mesh axes by number, and the devices along them.
#pragma once
#include <tessera/mesh.hpp>

#include <cstdint>
#include <vector>

namespace tessera {

using MeshAxes = std::vector<int>;      // axis numbers; first major where they split one dim
using DimAxes = std::vector<MeshAxes>;  // for each dim the axes that split it
inline const MeshAxes no_axes;

// The number of devices along the axes together; 1 for no axes.
std::int64_t devices_along(const Mesh&, const MeshAxes&);

// The group of `me`: the devices that differ from it only along `axes`, first axis major; `me` is among them.
std::vector<int> group_along(const Mesh&, const MeshAxes& axes, int me);

}  // namespace tessera
