#include "compile/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace tessera {
namespace {

// A group along the axes, and what its host's ranks send over the links that they share.
struct GroupOnHosts {
  double ranks = 1, hosts = 1;
  double mates = 1;      // of the group on one host
  double sharing = 1;    // groups that use a host's link at the same time
  double duties = 0;     // blocks that a rank forwards inside its host
  double pairs = 0;      // of a rank on the host and a member of its group elsewhere
  double blocks = 0;     // of members elsewhere, each once per host
  double delivered = 1;  // of the links' rates
  // By level: the group's ranks beyond the level's groups of hosts; all ranks below one of these.
  std::array<double, Topology::most_levels> outside = {}, inside_ranks = {};
};

// Adds what the ranks of a host send to others of their groups; returns the group on most hosts.
std::vector<int> add_host(GroupOnHosts& g, const Mesh& mesh, const MeshAxes& axes, const Topology& t,
                          int host) {
  const auto& ids = mesh.device_ids();
  std::vector<int> widest;
  double pairs = 0, blocks = 0;
  int most = 0;
  for (int k = 0; k < t.ranks_per_host; ++k) {
    const auto place = static_cast<std::size_t>(host) * static_cast<std::size_t>(t.ranks_per_host) +
                       static_cast<std::size_t>(k);
    if (place >= ids.size()) break;
    auto members = group_along(mesh, axes, ids[place]);
    std::map<int, int> on_host;
    for (const int id : members) ++on_host[id / t.ranks_per_host];
    const double mates = on_host[ids[place] / t.ranks_per_host];
    pairs += static_cast<double>(members.size()) - mates;
    blocks += (static_cast<double>(members.size()) - mates) / mates;
    if (static_cast<int>(on_host.size()) > most)
      most = static_cast<int>(on_host.size()), widest = std::move(members);
  }
  g.pairs = std::max(g.pairs, pairs), g.blocks = std::max(g.blocks, blocks);
  return widest;
}

// The busiest of a few hosts stands for all.
GroupOnHosts group_on_hosts(const Mesh& mesh, const MeshAxes& axes, const Topology& t) {
  GroupOnHosts g;
  constexpr int most_hosts = 3;
  const auto hosts = (mesh.size() + t.ranks_per_host - 1) / t.ranks_per_host;
  g.delivered = t.delivered(static_cast<double>(hosts));
  std::vector<int> members;
  for (int host = 0; host < std::min<int>(most_hosts, static_cast<int>(hosts)); ++host)
    if (auto widest = add_host(g, mesh, axes, t, host); host == 0 || g.pairs > 0) members = std::move(widest);
  std::map<int, int> on_host;
  for (const int id : members) ++on_host[id / t.ranks_per_host];
  int most = 0;
  for (const auto& [host, count] : on_host) most = std::max(most, count);
  g.ranks = static_cast<double>(members.size()), g.hosts = static_cast<double>(on_host.size());
  g.mates = most;
  const double of_a_host = std::min<double>(t.ranks_per_host, mesh.size());
  g.sharing = of_a_host / g.mates;
  g.duties = std::ceil((g.ranks - g.mates) / g.mates);
  for (int n = 0; n < t.levels; ++n) {
    const auto level = static_cast<std::size_t>(n);
    const int below = t.level[level].hosts;
    double inside = 0;
    for (const int id : members)
      inside += id / t.ranks_per_host / below == members[0] / t.ranks_per_host / below ? 1 : 0;
    g.outside[level] = g.ranks - inside;
    g.inside_ranks[level] = std::min<double>(of_a_host * below, mesh.size());
  }
  return g;
}

double latency_between(const Rates& m, const GroupOnHosts& g) {
  double seconds = m.between.latency_s;
  for (int n = 0; n < m.topology.levels; ++n)
    if (g.outside[static_cast<std::size_t>(n)] > 0)
      seconds += m.topology.level[static_cast<std::size_t>(n)].latency_s;
  return seconds;
}

// The host's link, or that of the level that is narrower for it: `crossings` blocks leave a host.
double crossing_seconds(const Rates& m, const GroupOnHosts& g, double bytes, double crossings) {
  double seconds = crossings * bytes / m.between.bytes_per_s;
  for (int n = 0; n < m.topology.levels; ++n) {
    const auto level = static_cast<std::size_t>(n);
    const double of_a_rank = g.pairs > 0 ? crossings / g.pairs : 0;
    const double sent = g.inside_ranks[level] * g.outside[level] * of_a_rank;
    seconds = std::max(seconds, sent * bytes / m.topology.level[level].bytes_per_s);
  }
  return seconds / g.delivered;
}

double all_to_all(const Rates& m, const GroupOnHosts& g, double bytes) {
  const double block = bytes / std::max(1.0, g.ranks - 1);
  const double posting = 2 * m.topology.message_s * (g.ranks - 1);
  if (g.hosts == 1) return m.inside.seconds(block) + posting;
  return latency_between(m, g) + std::max(posting, crossing_seconds(m, g, block, g.pairs));
}

// One of the four rounds of collectives by hosts: `block` to one rank of each other host.
double spread(const Rates& m, const GroupOnHosts& g, double block) {
  return latency_between(m, g) + 2 * m.topology.message_s * (g.hosts + g.mates) +
         crossing_seconds(m, g, block, g.blocks);
}
double inside_host(const Rates& m, const GroupOnHosts& g, double blocks, double block) {
  return m.inside.seconds(blocks * block) + 2 * m.topology.message_s * (g.mates - 1) * blocks;
}
double gather(const Rates& m, const GroupOnHosts& g, double block) {
  if (g.hosts == 1) return (g.ranks - 1) * (m.inside.seconds(block) + 2 * m.topology.message_s);
  return spread(m, g, block) + (g.mates > 1 ? inside_host(m, g, g.duties, block) : 0);
}
double reduce_scatter(const Rates& m, const GroupOnHosts& g, double block) {
  const double added = 3 * block / m.memory_bytes_per_s;
  if (g.hosts == 1) return gather(m, g, block) + (g.ranks - 1) * added;
  return spread(m, g, block) + (g.hosts - 1) * added +
         (g.mates > 1 ? inside_host(m, g, g.duties + 1, block) + (g.mates - 1) * (g.duties + 1) * added : 0);
}
double through_leaders(const Rates& m, const GroupOnHosts& g, double bytes) {
  const double added = 3 * bytes / m.memory_bytes_per_s;
  const double inside =
      g.mates > 1 ? 2 * m.inside.seconds(bytes) + 2 * (g.mates - 1) * m.topology.message_s : 0;
  return inside + (g.mates + g.hosts - 2) * added + latency_between(m, g) +
         (g.hosts - 1) * (g.sharing * bytes / m.between.bytes_per_s / g.delivered + 2 * m.topology.message_s);
}
double all_reduce(const Rates& m, const GroupOnHosts& g, double bytes) {
  constexpr double small_block = 64 << 10;
  if (g.hosts == 1 && bytes / g.ranks < small_block)
    return std::ceil(std::log2(g.ranks)) *
           (m.inside.seconds(bytes) + 2 * m.topology.message_s + 3 * bytes / m.memory_bytes_per_s);
  const double by_blocks = reduce_scatter(m, g, bytes / g.ranks) + gather(m, g, bytes / g.ranks);
  return g.hosts == 1 ? by_blocks : std::min(by_blocks, through_leaders(m, g, bytes));
}
double broadcast(const Rates& m, const GroupOnHosts& g, double bytes) {
  const double rounds = std::ceil(std::log2(g.ranks)),
               across = std::min(rounds, std::ceil(std::log2(g.hosts)));
  const double sent = bytes * g.sharing / m.between.bytes_per_s / g.delivered;
  return across * (latency_between(m, g) + sent) + (rounds - across) * m.inside.seconds(bytes) +
         2 * rounds * m.topology.message_s;
}

MeshAxes all_axes_if_none(const Mesh& mesh, MeshAxes axes) {
  if (axes.empty())
    for (int a = 0; a < mesh.ndim(); ++a) axes.push_back(a);
  return axes;
}

}  // namespace

bool has_forecast(const Mesh& mesh, const Rates& machine) {
  return mesh.is_abstract() && machine.topology.ranks_per_host > 0;
}

double forecast_seconds(const std::string& kind, std::int64_t received, const Mesh& mesh,
                        const MeshAxes& axes, const Rates& machine) {
  const auto g = group_on_hosts(mesh, all_axes_if_none(mesh, axes), machine.topology);
  const auto bytes = static_cast<double>(received);
  const double others = std::max(1.0, g.ranks - 1);
  if (g.ranks == 1) return 0;
  if (kind == "all-gather") return gather(machine, g, bytes / others);
  if (kind == "reduce-scatter") return reduce_scatter(machine, g, bytes / others);
  if (kind == "all-reduce") return all_reduce(machine, g, bytes * g.ranks / (2 * others));
  if (kind == "broadcast") return broadcast(machine, g, bytes);
  return all_to_all(machine, g, bytes);
}

std::int64_t forecast_crossing_bytes(const std::string& kind, std::int64_t bytes, const Mesh& mesh,
                                     const MeshAxes& axes, const Rates& machine) {
  const auto g = group_on_hosts(mesh, all_axes_if_none(mesh, axes), machine.topology);
  if (g.hosts == 1) return 0;
  const bool goes_by_hosts = kind == "all-gather" || kind == "reduce-scatter" || kind == "all-reduce";
  const double share = (g.ranks - g.mates) / (g.ranks - 1) / (goes_by_hosts ? g.mates : 1);
  return kind == "broadcast" ? bytes : static_cast<std::int64_t>(static_cast<double>(bytes) * share);
}

}  // namespace tessera
