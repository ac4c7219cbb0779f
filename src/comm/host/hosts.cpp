#include "comm/host/hosts.hpp"

#include <algorithm>
#include <limits>

#include "base/session.hpp"
#include "base/settings.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace tessera::comm {
namespace {

struct Hosts {
  std::vector<int> of_device;
  int count = 1, version = 0;
  std::int64_t received = 0, message_limit = std::numeric_limits<std::int64_t>::max();
};
Hosts& hosts() { return state<Hosts>(); }

}  // namespace

void set_hosts(std::vector<int> host_of_device) {
  Hosts& all = hosts();
  all.of_device = std::move(host_of_device);
  all.count = all.of_device.empty() ? 1 : 1 + *std::max_element(all.of_device.begin(), all.of_device.end());
  ++all.version;
}

int host_of(int device_id) {
  const auto& known = hosts().of_device;
  return device_id >= 0 && device_id < static_cast<int>(known.size()) ? known[device_id] : 0;
}
int host_count() { return hosts().count; }

void set_message_limit_between_hosts(std::int64_t bytes) { hosts().message_limit = bytes; }
std::int64_t message_limit(int device, int other) {
  const std::int64_t most = settings().message_limit;
  return on_one_host(device, other) ? most : std::min(most, hosts().message_limit);
}
std::int64_t message_limit(const Communicator& comm, int peer) {
  return message_limit(comm.device_ids()[comm.rank()], comm.device_ids()[peer]);
}

HostGroups group_by_host(const std::vector<int>& device_ids) {
  HostGroups groups;
  std::vector<int> number(host_count(), -1);
  for (std::size_t rank = 0; rank < device_ids.size(); ++rank) {
    int& host = number[host_of(device_ids[rank])];
    if (host < 0) {
      host = groups.hosts();
      groups.members.emplace_back();
    }
    groups.host.push_back(host);
    groups.place.push_back(static_cast<int>(groups.members[host].size()));
    groups.members[host].push_back(static_cast<int>(rank));
  }
  return groups;
}

const HostGroups& host_groups(const Communicator& comm) {
  auto& impl = comm.impl();
  if (impl.hosts == nullptr || impl.hosts_version != hosts().version) {
    impl.hosts = std::make_shared<const HostGroups>(group_by_host(impl.device_ids));
    impl.hosts_version = hosts().version;
  }
  return *impl.hosts;
}

bool spans_hosts(const Communicator& comm) { return host_count() > 1 && host_groups(comm).hosts() > 1; }

std::int64_t bytes_from_other_hosts() { return hosts().received; }

void count_from(const Communicator& comm, int rank, std::int64_t bytes) {
  if (host_count() == 1) return;
  const auto& ids = comm.device_ids();
  if (!on_one_host(ids[rank], ids[comm.rank()])) hosts().received += bytes;
}

void count_broadcast(const Communicator& comm, std::int64_t bytes, int root) {
  if (!spans_hosts(comm)) return;
  const auto& groups = host_groups(comm);
  if (groups.mine(comm.rank())[0] == comm.rank()) count_from(comm, root, bytes);
}

}  // namespace tessera::comm
