#include "api/memory.hpp"

#include <tessera/error.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

// "max" and what exceeds 64 bits say nothing.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : no_limit;
}

// Of the container that this process lives in, from its own group up to the root: version 2, or 1.
std::int64_t cgroup_limit() {
  std::int64_t limit = std::min(number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
                                number_in("/sys/fs/cgroup/memory.max"));
  std::ifstream groups("/proc/self/cgroup");
  const auto up_from = [&](std::string path, const std::string& root, const char* name) {
    for (; path.starts_with('/'); path.resize(path.find_last_of('/')))
      limit = std::min(limit, number_in(root + path + name));
  };
  for (std::string line; std::getline(groups, line);) {  // 0::/a/b, or 7:memory:/a/b
    const auto controllers = line.find(':') + 1, place = line.find(':', controllers) + 1;
    if (line.starts_with("0::"))
      up_from(line.substr(place), "/sys/fs/cgroup", "/memory.max");
    else if (("," + line.substr(controllers, place - 1 - controllers) + ",").find(",memory,") !=
             std::string::npos)
      up_from(line.substr(place), "/sys/fs/cgroup/memory", "/memory.limit_in_bytes");
  }
  return limit;
}

// A rank's part of the host, or what TESSERA_MEM_LIMIT says.
std::int64_t share_of_host() {
  if (settings().memory_limit_bytes > 0) return settings().memory_limit_bytes;
  const auto pages = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  return std::min(pages * page, cgroup_limit()) / std::max(1, comm::place_in_job().host_size);
}

// What `ulimit -v` leaves to this process, with what the pools would hand out again.
std::int64_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(no_limit)) return no_limit;
  std::ifstream pages("/proc/self/statm");
  std::int64_t used = 0;
  pages >> used;
  return static_cast<std::int64_t>(limit.rlim_cur) - used * sysconf(_SC_PAGESIZE) + memory_use().pooled_bytes;
}

}  // namespace

std::string memory_refusal(std::int64_t bytes, const std::string& what) {
  const std::string needs =
      what + " needs " + format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes) on each rank";
  const std::string cure = ". Use more hosts, a smaller dtype, or a sharding that splits more dimensions";
  const auto live = memory_use().live_bytes;
  if (const auto share = share_of_host(); bytes > share - live)
    return needs + (live > 0 ? " beside the " + format_bytes(live) + " that live there" : "") +
           ", but a rank may use " + format_bytes(share) + " (" +
           std::to_string(comm::place_in_job().host_size) + " ranks share the host)" + cure;
  if (const auto left = address_space_left(); bytes > left)
    return needs + ", but the limit of the address space (ulimit -v) leaves " +
           format_bytes(std::max<std::int64_t>(0, left)) + cure;
  return "";
}

void check_memory(std::int64_t bytes, const std::string& what) {
  const auto refusal = memory_refusal(bytes, what);
  if (!refusal.empty()) throw MemoryError(refusal);
}

}  // namespace tessera
