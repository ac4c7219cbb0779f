// Ranks treated as if they were on several hosts, while this exists: algorithms and counters behave as there.
#pragma once
#include <utility>
#include <vector>

#include "comm/host/hosts.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/transport.hpp"

namespace tessera::test {

class PretendedHosts {
 public:
  explicit PretendedHosts(std::vector<int> host_of_rank) {
    for (const int rank : comm::world().device_ids()) real_.push_back(comm::host_of(rank));
    comm::set_hosts(std::move(host_of_rank));
    comm::set_message_limit_between_hosts(message_limit);
  }
  ~PretendedHosts() {
    comm::set_hosts(real_);
    comm::set_message_limit_between_hosts(comm::longest_without_handshake());
  }
  PretendedHosts(const PretendedHosts&) = delete;

  static constexpr int message_limit = 60'000;

 private:
  std::vector<int> real_;
};

}  // namespace tessera::test
