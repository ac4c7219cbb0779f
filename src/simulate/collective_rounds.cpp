// The choice of algorithms: comm's own, for the groups at hand.
#include <algorithm>
#include <map>
#include <set>

#include "comm/collectives/two_level.hpp"
#include "simulate/plan_steps.hpp"

namespace tessera {

// The groups of all ranks along the axes. Ranks outside of the mesh have none.
GroupsPtr StepWriter::groups_along(const Mesh& mesh, const MeshAxes& axes) {
  for (const auto& [key, groups] : groups_)
    if (key.first == mesh && key.second == axes) return groups;
  auto groups = std::make_shared<RankGroups>(ranks());
  for (const int id : mesh.device_ids())
    if (groups->group_of[static_cast<std::size_t>(id)] < 0) groups->add(group_along(mesh, axes, id));
  groups_.push_back({{mesh, axes}, groups});
  return groups;
}

int StepWriter::hosts_of_a_group(const RankGroups& groups) const {
  std::size_t most = 1;
  for (const auto& members : groups.members) {
    std::set<int> hosts;
    for (const int rank : members) hosts.insert(host_of(rank));
    most = std::max(most, hosts.size());
  }
  return static_cast<int>(most);
}
bool StepWriter::spans_hosts(const RankGroups& groups) const { return hosts_of_a_group(groups) > 1; }

namespace {
constexpr double small_block_bytes = 64 << 10;  // as in comm's use_own
}  // namespace

RoundsPtr StepWriter::all_gather(const GroupsPtr& groups, double block_bytes) const {
  if (!spans_hosts(*groups)) return pairwise_rounds(groups, block_bytes, false);
  return host_rounds(
      groups, [this](int rank) { return host_of(rank); }, HostRounds::gather, block_bytes);
}
RoundsPtr StepWriter::reduce_scatter(const GroupsPtr& groups, double block_bytes) const {
  if (!spans_hosts(*groups)) return pairwise_rounds(groups, block_bytes, true);
  return host_rounds(
      groups, [this](int rank) { return host_of(rank); }, HostRounds::reduce_scatter, block_bytes);
}

comm::HostGroups StepWriter::largest_by_hosts(const RankGroups& groups) const {
  comm::HostGroups hosts;
  std::map<int, std::size_t> number;
  for (const int rank : *std::max_element(groups.members.begin(), groups.members.end(),
                                          [](const auto&a, const auto&b) { return a.size() < b.size(); })) {
    const auto n = number.emplace(host_of(rank), number.size()).first->second;
    if (n == hosts.members.size()) hosts.members.emplace_back();
    hosts.members[n].push_back(rank);
  }
  return hosts;
}

// Through one rank of each host if that takes less time, by comm's own estimate.
RoundsPtr StepWriter::all_reduce(const GroupsPtr& groups, double bytes) const {
  const auto p = static_cast<double>(groups->largest());
  const int hosts = hosts_of_a_group(*groups);
  if (hosts == 1)
    return bytes / p < small_block_bytes ? doubling_rounds(groups, bytes)
                                         : ring_rounds(groups, bytes / p, true);
  const bool is_small =
      comm::reduces_through_leaders(largest_by_hosts(*groups), static_cast<std::int64_t>(bytes), rates_);
  const auto kind = is_small ? HostRounds::through_leaders : HostRounds::all_reduce;
  return host_rounds(
      groups, [this](int rank) { return host_of(rank); }, kind, is_small ? bytes : bytes / p);
}

RoundsPtr StepWriter::broadcast(const GroupsPtr& groups, double bytes, int root_place) const {
  constexpr double segment_bytes = 256 << 10;
  constexpr double most_segments = 4;
  const int segments = static_cast<int>(std::clamp(bytes / segment_bytes, 1.0, most_segments));
  return broadcast_rounds(groups, bytes, std::vector<int>(groups->members.size(), root_place), segments);
}

// A collective of a kernel, by the bytes that a member receives.
RoundsPtr StepWriter::of_kind(const std::string& kind, const GroupsPtr& groups, double received_bytes) const {
  const auto others = std::max(1.0, static_cast<double>(groups->largest()) - 1);
  if (kind == "broadcast") return broadcast(groups, received_bytes, 0);
  if (kind == "all-reduce") return all_reduce(groups, received_bytes * (others + 1) / (2 * others));
  if (kind == "all-gather") return all_gather(groups, received_bytes / others);
  if (kind == "reduce-scatter") return reduce_scatter(groups, received_bytes / others);
  if (kind == "collective-permute") {
    return exchange_rounds([groups, received_bytes](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (groups->group_of[r] < 0) return PlannedMessages{};
      const auto& members = groups->members[static_cast<std::size_t>(groups->group_of[r])];
      if (members.size() == 1) return PlannedMessages{};
      const auto next = (static_cast<std::size_t>(groups->place_of[r]) + 1) % members.size();
      return PlannedMessages{{{members[next], received_bytes, 1, 0}}, 1};
    });
  }
  return pairwise_rounds(groups, received_bytes / others, false);  // all-to-all; panels of operands
}

}  // namespace tessera
