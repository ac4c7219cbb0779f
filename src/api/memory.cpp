#include "api/memory.hpp"

#include <tessera/error.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

// The number in a file; no_limit for "max" and for numbers beyond 64 bits.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : no_limit;
}

// The memory of a machine or a container: total, and free.
struct Room {
  std::int64_t total = no_limit, free = no_limit;
  void reduce(std::int64_t limit, std::int64_t used) {
    if (limit == no_limit) return;
    total = std::min(total, limit);
    if (used != no_limit) free = std::min(free, std::max<std::int64_t>(0, limit - used));
  }
};

// The number on a line "name number"; 0 if there is no such line.
std::int64_t field_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ')
      return std::atoll(line.c_str() + name.size());
  return 0;
}

// Applies a cgroup's limit and usage; cached file pages, which the system can reclaim, do not count as used.
void reduce_by_group(Room& room, const std::string& group, bool is_version_2) {
  const auto limit = number_in(group + (is_version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (limit == no_limit) return;
  const auto used = number_in(group + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto spare = field_in(group + "/memory.stat", is_version_2 ? "inactive_file" : "total_inactive_file");
  room.reduce(limit, used == no_limit ? no_limit : std::max<std::int64_t>(0, used - spare));
}

// Applies the limits of the container that this process runs in, from its own cgroup up to the root: version
// 2, or 1.
void reduce_by_groups(Room& room) {
  const std::string roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
  for (const bool is_version_2 : {false, true}) reduce_by_group(room, roots[is_version_2], is_version_2);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // 0::/a/b, or 7:memory:/a/b
    const auto controllers = line.find(':') + 1, place = line.find(':', controllers) + 1;
    const bool is_version_2 = line.starts_with("0::");
    const std::string names = "," + line.substr(controllers, place - 1 - controllers) + ",";
    if (!is_version_2 && names.find(",memory,") == std::string::npos) continue;
    for (std::string path = line.substr(place); path.size() > 1 && path.starts_with('/');
         path.resize(path.find_last_of('/')))
      reduce_by_group(room, roots[is_version_2] + path, is_version_2);
  }
}

// A rank's share of the host's memory, or TESSERA_MEM_LIMIT. Accounts for memory used by other jobs and by
// other processes of the container.
std::int64_t share_of_host() {
  if (settings().memory_limit_bytes > 0) return settings().memory_limit_bytes;
  constexpr std::int64_t kib = 1024;
  Room room;
  room.total = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (const auto free = field_in("/proc/meminfo", "MemAvailable:"); free > 0) room.free = free * kib;
  reduce_by_groups(room);
  const std::int64_t ranks = std::max(1, comm::place_in_job().host_size);
  if (room.free == no_limit) return room.total / ranks;
  const auto mine = memory_use();
  return std::min(room.total / ranks, room.free / ranks + mine.live_bytes + mine.pooled_bytes);
}

// The share found by the last look at the system.
struct Share {
  std::int64_t bytes = 0;
  std::int64_t now() { return bytes = share_of_host(); }
};

// The address space that `ulimit -v` leaves to this process, plus the memory that the pools can reuse.
std::int64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(no_limit)) return no_limit;
  std::ifstream pages("/proc/self/statm");
  std::int64_t used = 0;
  pages >> used;
  return static_cast<std::int64_t>(limit.rlim_cur) - used * sysconf(_SC_PAGESIZE) + memory_use().pooled_bytes;
}

}  // namespace

std::int64_t memory_share() { return state<Share>().now(); }

std::string memory_refusal(std::int64_t bytes, const std::string& what) {
  const std::string needs =
      what + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) on each rank";
  const std::string cure = ". Use more hosts, a smaller dtype, or a sharding that splits more dimensions";
  const auto live = memory_use().live_bytes;
  if (const auto share = state<Share>().now(); bytes > share - live)
    return needs + (live > 0 ? " beside the " + format_bytes(live) + " that live there" : "") +
           ", but a rank may use " + format_bytes(share) + " (" +
           format_count(comm::place_in_job().host_size, "rank") + " on the host)" + cure;
  if (const auto left = address_space_left(); bytes > left)
    return needs + ", but the limit of the address space (ulimit -v) leaves " +
           format_bytes(std::max<std::int64_t>(0, left)) + cure;
  return "";
}

bool exceeds_memory(std::int64_t bytes) {
  const auto live = memory_use().live_bytes;
  if (const auto limit = settings().memory_limit_bytes; limit > 0) return bytes > limit - live;
  auto& share = state<Share>();
  return bytes + live > share.bytes / 2 && bytes > share.now() - live;
}

void check_memory(std::int64_t bytes, const std::string& what) {
  const auto refusal = memory_refusal(bytes, what);
  if (!refusal.empty()) throw MemoryError(refusal);
}

}  // namespace tessera
