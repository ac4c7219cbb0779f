// The seconds of one collective on a machine whose hosts are known from its file: what explain prints for
// meshes without processes. The closed forms of what src/simulate follows message by message.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "compile/forecast/collective_seconds.hpp"
#include "compile/forecast/panel_cost.hpp"
#include "program/program.hpp"

namespace tessera {

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
  // The seconds beyond the flops of a factorization, panel by panel (panel_pipeline.cpp).
  double factorization_seconds(const Program&, const Instruction&, const GridFactorization&);

 private:
  const forecast::GroupOnHosts& group(const Mesh&, const MeshAxes& axes);

  const Rates& machine_;
  std::vector<std::tuple<Mesh, MeshAxes, forecast::GroupOnHosts>> groups_;  // that were asked for
};

}  // namespace tessera
