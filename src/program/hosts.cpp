#include "program/hosts.hpp"

#include "comm/host/hosts.hpp"

namespace tessera {
namespace {

std::size_t extreme_of(const comm::HostGroups& groups, bool largest) {
  std::size_t found = groups.members[0].size();
  for (const auto& members : groups.members)
    found = largest ? std::max(found, members.size()) : std::min(found, members.size());
  return found;
}

bool is_on_several_hosts(const Mesh& mesh) { return comm::host_count() > 1 && !mesh.is_abstract(); }

}  // namespace

double share_from_other_hosts(const Mesh& mesh, const MeshAxes& axes) {
  if (!is_on_several_hosts(mesh) || axes.empty()) return 0;
  return worst_group(mesh, axes, [](const std::vector<int>& ids) {
    const auto groups = comm::group_by_host(ids);
    if (groups.hosts() == 1) return 0.0;
    const auto others = static_cast<double>(ids.size() - extreme_of(groups, false));
    return others / static_cast<double>(ids.size() - 1);
  });
}

std::int64_t ranks_of_a_host(const Mesh& mesh) {
  if (!is_on_several_hosts(mesh)) return 1;
  return static_cast<std::int64_t>(extreme_of(comm::group_by_host(mesh.device_ids()), true));
}

}  // namespace tessera
