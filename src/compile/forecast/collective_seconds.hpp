// The seconds of a collective in closed form, for a group whose ranks share the links of their hosts: what
// src/simulate follows message by message.
#pragma once
#include <array>
#include <cmath>

#include "base/rates.hpp"
#include "mesh/axes.hpp"

namespace tessera::forecast {

// How a group along mesh axes lies on hosts, and how much its ranks of one host send over the host's links.
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

// The busiest of a few hosts represents all hosts.
GroupOnHosts group_on_hosts(const Mesh&, const MeshAxes&, const Topology&);

// `block`: bytes from each rank.
double gather(const Rates&, const GroupOnHosts&, double block);
double reduce_scatter(const Rates&, const GroupOnHosts&, double block);
double all_reduce(const Rates&, const GroupOnHosts&, double bytes);
double broadcast(const Rates&, const GroupOnHosts&, double bytes);
// `bytes` and `messages` of a rank. All peers count alike: of a shift between neighbours as many cross as of
// the others.
double all_to_all(const Rates&, const GroupOnHosts&, double bytes, double messages);

// Rounds of an all-reduce by doubling.
inline double doubling_rounds(double ranks) { return std::ceil(std::log2(ranks)); }
// The agreement of all ranks before a call that communicates (comm/watch/agreement): nine words by doubling.
constexpr double agreement_bytes = 72;
double agreement(const Rates&, const GroupOnHosts&);

}  // namespace tessera::forecast
