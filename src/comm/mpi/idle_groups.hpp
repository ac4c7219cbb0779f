// Frees communicators that are no longer used.
//
//   group({0, 2, 1})    order {0, 2, 1}  ->  set {0, 1, 2}, which has MPI's communicator
//   group({2, 1, 0})    order {2, 1, 0}  ->  the same
//
// An order is a table of ranks; each process frees unused ones on its own, the least recently used first. A
// set's communicator is freed collectively: if one rank of a larger group has too many sets, the next
// agreement of that group on an evaluation frees the sets among its ranks that no member uses.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// group() for callers that keep the communicator beyond a call (plans), or that call back into the program
// meanwhile.
std::shared_ptr<const Communicator> hold_group(const std::vector<int>& device_ids);

// Whether this rank asks for free_idle_groups() in its next agreement (Asks::for_fewer_groups).
bool has_too_many_groups();

// Collective over comm's ranks, each outside of any kernel: frees the sets among its devices that none of
// their members holds, in an order that all of them share. A set that a plan of any member holds is kept.
void free_idle_groups(const Communicator& comm);

std::size_t group_count();                      // sets of two or more devices, without that of all devices
std::size_t set_most_groups(std::size_t most);  // for tests; returns what it was: 256

}  // namespace tessera::comm
