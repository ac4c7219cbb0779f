// The MPI of this build, under MPI's own names: a linked library's <mpi.h>, or the bridge
// (TESSERA_MPI_BRIDGE), which takes the MPI that is there when the program starts. The room's files include
// this header alone.
#pragma once
#ifdef TESSERA_MPI_BRIDGE
#include "comm/mpi/bridge/names.hpp"  // IWYU pragma: export
#else
#include <mpi.h>  // IWYU pragma: export

namespace tessera::comm {

// The communicator that an application's pointer to an MPI_Comm names.
inline MPI_Comm comm_at(const void* address) { return *static_cast<const MPI_Comm*>(address); }

// Before the first call of MPI.
inline void choose_mpi() {}

}  // namespace tessera::comm
#endif
