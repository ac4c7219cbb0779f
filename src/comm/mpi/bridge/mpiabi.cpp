// The binary interface of the MPI 5.0 standard, which new versions of several MPIs offer beside their own.
#include <mpi_abi.h>

#include "comm/mpi/bridge/adapter.hpp"

namespace tessera::comm::bridge {

Adapted adapt_standard(void* library) { return adapt(library, "mpiabi"); }

}  // namespace tessera::comm::bridge
