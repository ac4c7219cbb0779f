// The seconds of one collective on a machine whose hosts are known from its file: what explain prints for
// meshes without processes. The closed forms of what src/simulate follows message by message.
#pragma once
#include <string>

#include "base/rates.hpp"
#include "mesh/axes.hpp"

namespace tessera {

// Whether the forecast applies: an abstract mesh, and a machine file with ranks_per_host.
bool has_forecast(const Mesh&, const Rates&);
// `bytes`: received by the busiest rank, as in traffic_of. No axes: all of the mesh.
double forecast_seconds(const std::string& kind, std::int64_t bytes, const Mesh&, const MeshAxes& axes,
                        const Rates&);
// The part of the bytes that comes from other hosts.
std::int64_t forecast_crossing_bytes(const std::string& kind, std::int64_t bytes, const Mesh&,
                                     const MeshAxes& axes, const Rates&);

}  // namespace tessera
