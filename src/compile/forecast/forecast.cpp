#include "compile/forecast/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera {
namespace {

MeshAxes all_axes_if_none(const Mesh& mesh, MeshAxes axes) {
  if (axes.empty())
    for (int a = 0; a < mesh.ndim(); ++a) axes.push_back(a);
  return axes;
}

}  // namespace

const forecast::GroupOnHosts& CollectiveForecast::group(const Mesh& mesh, const MeshAxes& given) {
  const auto axes = all_axes_if_none(mesh, given);
  for (const auto& [of, along, found] : groups_)
    if (along == axes && of == mesh) return found;
  groups_.emplace_back(mesh, axes, forecast::group_on_hosts(mesh, axes, machine_.topology));
  return std::get<forecast::GroupOnHosts>(groups_.back());
}

double CollectiveForecast::seconds(const std::string& kind, std::int64_t received, const Mesh& mesh,
                                   const MeshAxes& axes) {
  const auto& g = group(mesh, axes);
  const auto bytes = static_cast<double>(received);
  const double others = std::max(1.0, g.ranks - 1);
  if (g.ranks == 1) return 0;
  if (kind == "all-gather") return forecast::gather(machine_, g, bytes / others);
  if (kind == "reduce-scatter") return forecast::reduce_scatter(machine_, g, bytes / others);
  if (kind == "all-reduce") return forecast::all_reduce(machine_, g, bytes * g.ranks / (2 * others));
  if (kind == "broadcast") return forecast::broadcast(machine_, g, bytes);
  return forecast::all_to_all(machine_, g, bytes, kind == "collective-permute" ? 1 : others);
}

double CollectiveForecast::agreement_seconds(const Mesh& mesh) {
  if (applies_to(mesh)) return forecast::agreement(machine_, group(mesh, {}));
  return forecast::doubling_rounds(hosts_of(mesh)) * machine_.between.latency_s;
}

std::int64_t CollectiveForecast::crossing_bytes(const std::string& kind, std::int64_t bytes, const Mesh& mesh,
                                                const MeshAxes& axes) {
  const auto& g = group(mesh, axes);
  if (g.hosts == 1) return 0;
  const bool goes_by_hosts = kind == "all-gather" || kind == "reduce-scatter" || kind == "all-reduce";
  const double share = (g.ranks - g.mates) / (g.ranks - 1) / (goes_by_hosts ? g.mates : 1);
  return kind == "broadcast" ? bytes : static_cast<std::int64_t>(static_cast<double>(bytes) * share);
}

}  // namespace tessera
