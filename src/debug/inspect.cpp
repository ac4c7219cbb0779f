// Displays arrays and counters.
#include <tessera/debug.hpp>

#include <algorithm>

#include "comm/host/hosts.hpp"
#include "comm/watch/traffic.hpp"
#include "graph/node.hpp"

namespace tessera::debug {

std::string visualize_array_sharding(const Array& x, VisualizeOptions options, std::source_location where) {
  const Call call("visualize_array_sharding", where);
  return visualize_sharding(x.shape(), x.sharding(), options);
}

void inspect_array_sharding(const Array& x, const std::function<void(const Sharding&)>& callback,
                            std::source_location where) {
  const Call call("inspect_array_sharding", where);
  const Sharding sharding = x.sharding();
  const UserCode users;
  callback(sharding);
}

CommStats::CommStats() { restart(); }
void CommStats::restart() {
  before_.clear();
  crossing_before_ = comm::bytes_from_other_hosts();
  for (const auto& kind : comm::traffic_kinds()) {
    const auto now = comm::traffic(kind);
    before_.push_back({kind, now.calls, now.bytes});
  }
  const auto total = comm::traffic();
  before_.push_back({"", total.calls, total.bytes});
}
std::int64_t CommStats::calls(const std::string& kind) const {
  const auto found =
      std::find_if(before_.begin(), before_.end(), [&](const Count& c) { return c.kind == kind; });
  return comm::traffic(kind).calls - (found == before_.end() ? 0 : found->calls);
}
std::int64_t CommStats::bytes(const std::string& kind) const {
  const auto found =
      std::find_if(before_.begin(), before_.end(), [&](const Count& c) { return c.kind == kind; });
  return comm::traffic(kind).bytes - (found == before_.end() ? 0 : found->bytes);
}
std::int64_t CommStats::host_crossing_bytes() const {
  return comm::bytes_from_other_hosts() - crossing_before_;
}
std::vector<std::string> CommStats::kinds() const {
  std::vector<std::string> called;
  for (const auto& kind : comm::traffic_kinds())
    if (calls(kind) > 0) called.push_back(kind);
  return called;
}

}  // namespace tessera::debug
