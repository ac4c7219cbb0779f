// Collectives of ranks on several hosts: data cross between two hosts only once, all other traffic stays in
// the hosts' memory. All are started here as rounds of messages; the blocking ones wait at once.
//
//   all-gather, hosts {0 1} {2 3}
//     across hosts    0 <-> 2, 1 <-> 3: each block is sent to one rank of every other host (ranks take turns)
//     within a host   0 <-> 1, 2 <-> 3: that rank passes the block on
//   reduction
//     within a host   for each block, one rank adds up the host's terms (ranks take turns)
//     across hosts    that sum is sent to the block's rank
//
// Additions follow the order of ranks within a host, then the order of hosts: the bits depend on the
// distribution of ranks over hosts, and are the same on every rank and in every run.
#pragma once
#include <span>

#include "base/rates.hpp"
#include "comm/collectives/combine.hpp"
#include "comm/collectives/pending_impl.hpp"
#include "comm/host/hosts.hpp"

namespace tessera::comm {

// Whether collectives of this communicator use two levels: it spans several hosts, and TESSERA_COLLECTIVES is
// not mpi.
bool goes_by_hosts(const Communicator&);

void start_gather_by_hosts(Pending::Impl&, std::byte* out, std::span<const std::int64_t> bytes_of,
                           std::span<const std::int64_t> offset_of);
void start_reduce_scatter_by_hosts(Pending::Impl&, ReduceKind, Dtype, const std::byte* in, std::byte* out,
                                   std::span<const std::int64_t> counts);
void start_all_reduce_by_hosts(Pending::Impl&, ReduceKind, Dtype, const std::byte* in, std::byte* out,
                               std::int64_t count);

// A small all-reduce goes through one rank of each host, which saves one message latency; in a large one
// every rank carries its own block.
bool reduces_through_leaders(const HostGroups&, std::int64_t bytes, const Rates&);

// ---- Bytes that the busiest rank receives from other hosts: the figures that explain() prints ----
std::int64_t gather_crossing_bytes(const HostGroups&, std::span<const std::int64_t> bytes_of);
std::int64_t reduce_scatter_crossing_bytes(const HostGroups&, std::span<const std::int64_t> bytes_of);
std::int64_t all_reduce_crossing_bytes(const HostGroups&, std::int64_t count, std::int64_t item,
                                       const Rates&);

}  // namespace tessera::comm
