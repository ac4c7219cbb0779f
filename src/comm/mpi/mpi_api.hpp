// The MPI of this build, under MPI's own names: a linked library's <mpi.h>, or the bridge
// (TESSERA_MPI_BRIDGE), which uses the MPI found when the program starts. Files of comm include this header
// alone.
#pragma once
#ifdef TESSERA_MPI_BRIDGE
#include "comm/mpi/bridge/names.hpp"  // IWYU pragma: export
#else
#include <dlfcn.h>
#include <mpi.h>  // IWYU pragma: export

#include "comm/mpi/yielding.hpp"

namespace tessera::comm {

// The communicator behind an application's pointer to an MPI_Comm.
inline MPI_Comm comm_at(const void* address) { return *static_cast<const MPI_Comm*>(address); }

// Must precede the first MPI call; a linked MPI needs no choice.
inline void choose_mpi() {}

// A function that only some MPIs have, or null.
inline void* mpi_symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

// Whether this host has more ranks than cores.
inline void set_shared_cores(bool shared) { shares_cores = shared; }

}  // namespace tessera::comm
#endif
