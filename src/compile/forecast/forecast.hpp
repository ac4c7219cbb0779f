// The seconds of one collective on a machine whose hosts are known, from its file or from the job: the closed
// forms of what src/simulate follows message by message.
#pragma once
#include <string>
#include <tuple>
#include <vector>

#include "compile/forecast/collective_seconds.hpp"
#include "compile/forecast/panel_cost.hpp"
#include "program/hosts.hpp"
#include "program/program.hpp"

namespace tessera {

class CollectiveForecast {
 public:
  explicit CollectiveForecast(const Rates& machine) : machine_(machine) {}

  // A machine whose hosts are known, with the mesh's ranks on them in order.
  bool applies_to(const Mesh& mesh) const {
    const int of_a_host = machine_.topology.ranks_per_host;
    return of_a_host > 0 && (mesh.is_abstract() || is_on_hosts_in_order(mesh, of_a_host));
  }
  // `bytes`: received by the busiest rank, as in traffic_of. No axes: all of the mesh.
  double seconds(const std::string& kind, std::int64_t bytes, const Mesh&, const MeshAxes& axes);
  // The agreement of the mesh's ranks before a call that communicates; 0 on one host, whose ranks have a page
  // for it.
  double agreement_seconds(const Mesh&);
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
