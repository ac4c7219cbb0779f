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
  std::int64_t message_bytes = 0;
};
Counts& counts() { return state<Counts>(); }

void add(Traffic& traffic, std::int64_t bytes) {
  ++traffic.calls;
  traffic.bytes += bytes;
}
}  // namespace

void count(std::string_view kind, std::int64_t bytes) {
  Counts& all = counts();
  add(all.total, bytes);
  auto found = all.of_kind.find(kind);
  if (found == all.of_kind.end()) found = all.of_kind.emplace(std::string(kind), Traffic{}).first;
  add(found->second, bytes);
}

void counts_itself() { ++counts().self_counted; }
std::int64_t self_counted() { return counts().self_counted; }

Traffic traffic(const std::string& kind) {
  const Counts& all = counts();
  if (kind.empty()) return all.total;
  const auto found = all.of_kind.find(kind);
  return found == all.of_kind.end() ? Traffic{} : found->second;
}

void count_messages(std::int64_t bytes) { counts().message_bytes += bytes; }
std::int64_t bytes_of_messages() { return counts().message_bytes; }

std::vector<std::string> traffic_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, counted] : counts().of_kind) kinds.push_back(kind);
  return kinds;
}

}  // namespace tessera::comm
