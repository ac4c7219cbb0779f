// The ranks of each host, and the hosts that a communicator spans. Two ranks share a host when MPI says
// that they could share memory; containers with separate memory count as separate hosts.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// By device id: the number of its host, counted from 0 in the order of the hosts' first ranks. Set at
// start-up, the same on all ranks; all 0 if the job has one host or the hosts are unknown.
void set_hosts(std::vector<int> host_of_device);
int host_of(int device_id);
int host_count();
inline bool on_one_host(int device, int other) { return host_of(device) == host_of(other); }

// The bytes at which messages between two devices are cut. Between hosts that TCP connects, a message is
// short enough to be sent without a handshake: Open MPI sends the answers to handshakes behind the data that
// wait on the same connection, so that two ranks which exchange longer messages send by turns (0.06 for
// 0.12 GB/s).
void set_message_limit_between_hosts(std::int64_t bytes);  // at start-up, the same on all ranks
std::int64_t message_limit(int device, int other);
std::int64_t message_limit(const Communicator& comm, int peer);  // of this rank and another

// The ranks of a communicator by host, hosts in the order of their first ranks.
//
//   devices 0 1 | 2 3 4     rank 3:  host 1, place 1;  members {{0, 1}, {2, 3, 4}}
struct HostGroups {
  std::vector<std::vector<int>> members;  // by host: ranks of the communicator, ascending
  std::vector<int> host, place;           // by rank: which host, and which of its members
  int hosts() const { return static_cast<int>(members.size()); }
  // The other hosts, the next one first, so that not all hosts send to the same one at a time.
  template <class Do> void for_others(int than, Do what) const {
    for (int step = 1; step < hosts(); ++step) what((than + step) % hosts());
  }
  const std::vector<int>& mine(int rank) const { return members[host[rank]]; }
  // The member of a host that serves the k-th rank of another host: members take turns, so that all of them
  // communicate.
  int partner(int to_host, int k) const {
    const auto& there = members[to_host];
    return there[static_cast<std::size_t>(k) % there.size()];
  }
};
HostGroups group_by_host(const std::vector<int>& device_ids);
// Computed at the first call and kept with the communicator.
const HostGroups& host_groups(const Communicator&);
bool spans_hosts(const Communicator&);

// Bytes of data that this rank has received from ranks on other hosts since the start. Collectives, exchanges
// and messages of comm are counted; agreements and texts are not.
std::int64_t bytes_from_other_hosts();
void count_from(const Communicator&, int rank, std::int64_t bytes);
// Counts the MPI library's broadcast, which enters each host once: at its first rank.
void count_broadcast(const Communicator&, std::int64_t bytes, int root);

}  // namespace tessera::comm
