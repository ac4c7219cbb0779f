#include "compile/forecast/collective_seconds.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::forecast {
namespace {

// The number of the group's members at positions of the mesh below `end`; `me` is one of them. A position is
// a number whose digits are the coordinates, and a digit along the axes takes every value.
std::int64_t members_below(const Mesh& mesh, const MeshAxes& axes, std::int64_t me, std::int64_t end) {
  const auto& sizes = mesh.axis_sizes();
  if (end >= mesh.size()) return devices_along(mesh, axes);
  std::int64_t stride = mesh.size(), free = devices_along(mesh, axes), below = 0;
  for (int a = 0; a < mesh.ndim(); ++a) {
    const int size = sizes[static_cast<std::size_t>(a)];
    stride /= size;
    const std::int64_t limit = end / stride % size, own = me / stride % size;
    if (std::find(axes.begin(), axes.end(), a) != axes.end()) {
      free /= size;
      below += limit * free;
    } else if (own != limit) {
      return own < limit ? below + free : below;
    }
  }
  return below;
}

// Adds what the ranks of a host send to others of their groups. Hosts hold ranks in the mesh's order.
void add_host(GroupOnHosts& g, const Mesh& mesh, const MeshAxes& axes, const Topology& t, std::int64_t host) {
  const std::int64_t first = host * t.ranks_per_host,
                     end = std::min(first + t.ranks_per_host, static_cast<std::int64_t>(mesh.size()));
  const auto ranks = static_cast<double>(devices_along(mesh, axes));
  double pairs = 0, blocks = 0;
  for (std::int64_t place = first; place < end; ++place) {
    const auto mates =
        static_cast<double>(members_below(mesh, axes, place, end) - members_below(mesh, axes, place, first));
    pairs += ranks - mates;
    blocks += (ranks - mates) / mates;
  }
  g.pairs = std::max(g.pairs, pairs), g.blocks = std::max(g.blocks, blocks);
}

// The place of the rank on one of these hosts whose group spans most hosts.
std::int64_t widest_place(const Mesh& mesh, const MeshAxes& axes, const Topology& t, std::int64_t hosts) {
  std::int64_t widest = 0, fewest_mates = mesh.size() + 1;
  for (std::int64_t place = 0; place < std::min<std::int64_t>(hosts * t.ranks_per_host, mesh.size());
       ++place) {
    const std::int64_t first = place / t.ranks_per_host * t.ranks_per_host;
    const auto mates =
        members_below(mesh, axes, place, first + t.ranks_per_host) - members_below(mesh, axes, place, first);
    if (mates < fewest_mates) fewest_mates = mates, widest = place;
  }
  return widest;
}

}  // namespace

GroupOnHosts group_on_hosts(const Mesh& mesh, const MeshAxes& axes, const Topology& t) {
  GroupOnHosts g;
  const std::int64_t of_a_host = t.ranks_per_host, hosts = (mesh.size() + of_a_host - 1) / of_a_host;
  const std::int64_t asked = std::min<std::int64_t>(3, hosts);
  g.delivered = t.delivered(static_cast<double>(hosts));
  for (std::int64_t host = 0; host < asked; ++host) add_host(g, mesh, axes, t, host);
  const auto me = widest_place(mesh, axes, t, asked);
  const auto inside = [&](std::int64_t ranks) {  // members below the same group of hosts
    const std::int64_t first = me / ranks * ranks;
    return members_below(mesh, axes, me, first + ranks) - members_below(mesh, axes, me, first);
  };
  std::int64_t most = 0, found = 0;
  for (std::int64_t host = 0; host < hosts; ++host) {
    const auto here = members_below(mesh, axes, me, (host + 1) * of_a_host) -
                      members_below(mesh, axes, me, host * of_a_host);
    most = std::max(most, here), found += here > 0 ? 1 : 0;
  }
  g.ranks = static_cast<double>(devices_along(mesh, axes)), g.hosts = static_cast<double>(found);
  g.mates = static_cast<double>(most);
  const double on_a_host = std::min<double>(t.ranks_per_host, mesh.size());
  g.sharing = on_a_host / g.mates;
  g.duties = std::ceil((g.ranks - g.mates) / g.mates);
  for (int n = 0; n < t.levels; ++n) {
    const auto level = static_cast<std::size_t>(n);
    const std::int64_t below = of_a_host * t.level[level].hosts;
    g.outside[level] = g.ranks - static_cast<double>(inside(below));
    g.inside_ranks[level] = static_cast<double>(std::min<std::int64_t>(below, mesh.size()));
  }
  return g;
}

namespace {

double latency_between(const Rates& m, const GroupOnHosts& g, double bytes) {
  double seconds = m.between.latency_s * (m.topology.asks_first(bytes) ? 3 : 1);
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

// A rank's messages: each takes its processor at either end, where taking in what has arrived goes on while
// the last one is under way. `way_s`: from the last one's posting to its arrival.
double messages_seconds(const Rates& m, double messages, double way_s) {
  const double posting = messages * m.topology.message_s;
  return std::max(posting + way_s + m.topology.message_s, 2 * posting);
}

// One of the four rounds of collectives by hosts: `block` to one rank of each other host.
double spread(const Rates& m, const GroupOnHosts& g, double block) {
  const double latency = latency_between(m, g, block);
  return std::max(messages_seconds(m, g.hosts + g.mates - 2, latency),
                  latency + crossing_seconds(m, g, block, g.blocks) + 2 * m.topology.message_s);
}
double inside_host(const Rates& m, const GroupOnHosts& g, double blocks, double block) {
  return messages_seconds(m, (g.mates - 1) * blocks, m.inside.seconds((g.mates - 1) * blocks * block));
}

}  // namespace

double all_to_all(const Rates& m, const GroupOnHosts& g, double bytes, double messages) {
  const double block = bytes / std::max(1.0, g.ranks - 1);
  const double copying = m.inside.seconds((g.mates - 1) * block);
  if (g.hosts == 1) return std::max(copying, 2 * m.topology.message_s * messages);
  const double latency = latency_between(m, g, bytes / messages);
  return std::max(
      {copying, messages_seconds(m, messages, latency), latency + crossing_seconds(m, g, block, g.pairs)});
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

namespace {
double through_leaders(const Rates& m, const GroupOnHosts& g, double bytes) {
  const double added = 3 * bytes / m.memory_bytes_per_s;
  const double inside = g.mates > 1 ? m.inside.seconds((g.mates - 1) * bytes) + m.inside.seconds(bytes) +
                                          2 * (g.mates - 1) * m.topology.message_s
                                    : 0;
  return inside + (g.mates + g.hosts - 2) * added + latency_between(m, g, bytes) +
         (g.hosts - 1) * (g.sharing * bytes / m.between.bytes_per_s / g.delivered + 2 * m.topology.message_s);
}
}  // namespace

double all_reduce(const Rates& m, const GroupOnHosts& g, double bytes) {
  constexpr double small_block = 64 << 10;
  if (g.hosts == 1 && bytes / g.ranks < small_block)
    return doubling_rounds(g.ranks) *
           (m.inside.seconds(bytes) + 2 * m.topology.message_s + 3 * bytes / m.memory_bytes_per_s);
  const double by_blocks = reduce_scatter(m, g, bytes / g.ranks) + gather(m, g, bytes / g.ranks);
  return g.hosts == 1 ? by_blocks : std::min(by_blocks, through_leaders(m, g, bytes));
}
// The binomial tree in segments: one behind the other at the busiest rank, which sends each to as many as
// there are rounds.
constexpr double segment_bytes = 256 << 10;
constexpr double most_segments = 4;
double broadcast(const Rates& m, const GroupOnHosts& g, double bytes) {
  const double rounds = doubling_rounds(g.ranks), across = doubling_rounds(g.hosts);
  const double segments = std::clamp(std::floor(bytes / segment_bytes), 1.0, most_segments);
  const double sent = bytes * g.sharing / m.between.bytes_per_s / g.delivered;
  const double tree = across * (latency_between(m, g, bytes / segments) + sent / segments) +
                      (rounds - across) * m.inside.seconds(bytes / segments);
  return tree + (segments - 1) * std::max(across * sent / segments, bytes / segments / m.inside.bytes_per_s) +
         2 * rounds * segments * m.topology.message_s;
}

double agreement(const Rates& m, const GroupOnHosts& g) {
  if (g.hosts == 1) return 0;
  const double rounds = doubling_rounds(g.ranks), across = doubling_rounds(g.hosts);
  return (rounds - across) * m.inside.latency_s + across * latency_between(m, g, agreement_bytes) +
         2 * rounds * m.topology.message_s;
}

}  // namespace tessera::forecast
