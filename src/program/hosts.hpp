// Ranks along mesh axes on other hosts: traffic between hosts has other rates than traffic inside one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "base/rates.hpp"
#include "mesh/axes.hpp"

namespace tessera {

// Calls `of_group` for each group of devices along the axes and returns the largest result.
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

// The largest fraction, over all ranks, of data received along the axes that comes from other hosts. 0 for a
// job on one host, and for meshes without processes.
double share_from_other_hosts(const Mesh&, const MeshAxes&);
// The largest number of the mesh's ranks on one host.
std::int64_t ranks_of_a_host(const Mesh&);
// The hosts of the mesh's ranks: 1 for a job on one host, and for meshes without processes.
int hosts_of(const Mesh&);
// Whether the job's hosts hold so many ranks each, in the order of the mesh.
bool is_on_hosts_in_order(const Mesh&, int ranks_of_a_host);

// The session's rates, with the hosts of this job where the file names none and each has as many ranks.
Rates rates_of_job();

}  // namespace tessera
