// The communicators of this process, owned in one place. For the environment only; everybody else calls world() and group().
#pragma once
#include <mpi.h>

namespace tessera::comm {

void set_world(MPI_Comm handle);  // takes the handle over
void free_communicators();        // in the order in which they were made; collective
void forget_communicators();      // when MPI is gone already

}  // namespace tessera::comm
