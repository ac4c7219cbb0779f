// Which devices of a mesh talk to each other.
#pragma once
#include <tessera/mesh.hpp>

#include <vector>

namespace tessera {

// The devices that differ from `me` only along `axes`, first axis major; `me` is among them.
std::vector<int> group_along(const Mesh&, const std::vector<int>& axes, int me);

}  // namespace tessera
