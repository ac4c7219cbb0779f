// MPICH and the libraries with its binary interface (Intel MPI, MVAPICH, Cray's): handles are ints.
#include <mpi.h>

#include "comm/mpi/bridge/adapter.hpp"

namespace tessera::comm::bridge {

Adapted adapt_mpich(void* library) { return adapt(library, "mpich"); }

}  // namespace tessera::comm::bridge
