// Open MPI 4 and 5, which share one binary interface: handles are pointers, and the predefined ones are
// addresses in the library.
#include <mpi.h>

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) static_cast<type>(dlsym(library, #global))

#include "comm/mpi/bridge/adapter.hpp"

namespace tessera::comm::bridge {

Adapted adapt_openmpi(void* library) { return adapt(library, "openmpi"); }

}  // namespace tessera::comm::bridge
