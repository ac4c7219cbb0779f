// The communicators of this process, owned in one place. For the environment only; all other code calls
// world() and group().
#pragma once
#include "comm/mpi/mpi_api.hpp"

namespace tessera::comm {

class Communicator;

// All devices, only for agreements and the end of the program: traffic on world() cannot interfere with it.
const Communicator& control();

void set_world(MPI_Comm handle, MPI_Comm control);  // takes the handles over, until the session ends

}  // namespace tessera::comm
