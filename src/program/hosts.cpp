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

int hosts_of(const Mesh& mesh) {
  return is_on_several_hosts(mesh) ? comm::group_by_host(mesh.device_ids()).hosts() : 1;
}

bool is_on_hosts_in_order(const Mesh& mesh, int ranks_of_a_host) {
  if (!is_on_several_hosts(mesh)) return false;
  const auto& ids = mesh.device_ids();
  for (std::size_t place = 0; place < ids.size(); ++place)
    if (comm::host_of(ids[place]) != static_cast<int>(place) / ranks_of_a_host) return false;
  return true;
}

Rates rates_of_job() {
  Rates machine = rates();
  if (machine.topology.ranks_per_host > 0 || comm::host_count() < 2) return machine;
  const auto& hosts = comm::host_groups(comm::world());
  const auto of_a_host = static_cast<int>(hosts.members[0].size());
  for (int rank = 0; rank < comm::world().size(); ++rank)
    if (hosts.host[static_cast<std::size_t>(rank)] != rank / of_a_host) return machine;
  machine.topology.ranks_per_host = of_a_host;
  return machine;
}

}  // namespace tessera
