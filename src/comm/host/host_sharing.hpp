// Start-up of host_memory and direct_read, called by the environment. Collective.
#pragma once
#include "comm/mpi/mpi_api.hpp"

#include <vector>

namespace tessera::comm {

// By rank of the job: the first rank of its host, or -1 if `works` is false there. `works` is the same on all
// ranks of a host.
std::vector<int> first_ranks_of_hosts(bool works, MPI_Comm host, MPI_Comm world);

// Finds out whether the ranks of `host` can map each other's memory (all of them or none) and tells all ranks
// of the job.
void find_sharing_ranks(MPI_Comm host, MPI_Comm world);
// The same for reading it in place (direct_read.hpp).
void find_readable_ranks(MPI_Comm host, MPI_Comm world);

}  // namespace tessera::comm
