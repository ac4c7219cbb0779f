#include "comm/watch/traffic.hpp"

#include <functional>
#include <map>

#include "base/session.hpp"

namespace tessera::comm {
namespace {
struct Counts {
  std::map<std::string, Traffic, std::less<>> of_kind;
  Traffic total;
  std::int64_t self_counted = 0;
};
Counts& counts() { return state<Counts>(); }

void add(Traffic& traffic, std::int64_t bytes) {
  ++traffic.calls;
  traffic.bytes += bytes;
}
}  // namespace

void count(std::string_view kind, std::int64_t bytes) {
  auto& [traffic_of, total, self] = counts();
  add(total, bytes);
  auto found = traffic_of.find(kind);
  if (found == traffic_of.end()) found = traffic_of.emplace(std::string(kind), Traffic{}).first;
  add(found->second, bytes);
}

void counts_itself() { ++counts().self_counted; }
std::int64_t self_counted() { return counts().self_counted; }

Traffic traffic(const std::string& kind) {
  const auto& [traffic_of, total, self] = counts();
  if (kind.empty()) return total;
  const auto found = traffic_of.find(kind);
  return found == traffic_of.end() ? Traffic{} : found->second;
}

std::vector<std::string> traffic_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, counted] : counts().of_kind) kinds.push_back(kind);
  return kinds;
}

}  // namespace tessera::comm
