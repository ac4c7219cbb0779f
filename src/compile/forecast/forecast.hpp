// The seconds of one collective on a machine whose hosts are known from its file: what explain prints for
// meshes without processes. The closed forms of what src/simulate follows message by message.
#pragma once
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "base/rates.hpp"
#include "compile/forecast/panel_cost.hpp"
#include "mesh/axes.hpp"
#include "program/program.hpp"

namespace tessera {

// A group along mesh axes, and what its host's ranks send over the links that they share.
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

class CollectiveForecast {
 public:
  explicit CollectiveForecast(const Rates& machine) : machine_(machine) {}

  // An abstract mesh, and a machine file with ranks_per_host.
  bool applies_to(const Mesh& mesh) const {
    return mesh.is_abstract() && machine_.topology.ranks_per_host > 0;
  }
  // `bytes`: received by the busiest rank, as in traffic_of. No axes: all of the mesh.
  double seconds(const std::string& kind, std::int64_t bytes, const Mesh&, const MeshAxes& axes);
  // The part of the bytes that comes from other hosts.
  std::int64_t crossing_bytes(const std::string& kind, std::int64_t bytes, const Mesh&, const MeshAxes& axes);
  // The seconds beyond the flops of a factorization, panel by panel.
  double factorization_seconds(const Program&, const Instruction&, const GridFactorization&);

 private:
  const GroupOnHosts& group(const Mesh&, const MeshAxes& axes);

  const Rates& machine_;
  std::vector<std::tuple<Mesh, MeshAxes, GroupOnHosts>> groups_;  // that were asked for
};

}  // namespace tessera
