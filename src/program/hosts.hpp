// Which ranks along mesh axes lie on other hosts: what crosses between hosts takes another time than what
// stays inside one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "mesh/axes.hpp"

namespace tessera {

// Calls `of_group` with each group of devices along the axes, and keeps the largest answer.
template <class OfGroup> auto worst_group(const Mesh& mesh, const MeshAxes& axes, OfGroup of_group) {
  decltype(of_group(std::vector<int>{})) most = 0;
  std::set<int> seen;
  for (const int id : mesh.device_ids()) {
    if (seen.contains(id)) continue;
    const auto ids = group_along(mesh, axes, id);
    seen.insert(ids.begin(), ids.end());
    most = std::max(most, of_group(ids));
  }
  return most;
}

// The share of what a rank receives from all others along the axes that comes from other hosts, where it is
// largest. 0 for a job on one host, and for meshes without processes.
double share_from_other_hosts(const Mesh&, const MeshAxes&);
// The number of the mesh's ranks on the host that has most of them.
std::int64_t ranks_of_a_host(const Mesh&);

}  // namespace tessera
