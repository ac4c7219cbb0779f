// Open MPI 4 and 5, which share one binary interface: handles are pointers, and the predefined ones are
// addresses in the library.
#include <dlfcn.h>
#include <mpi.h>

namespace {

// A program linked with Open MPI may hold the handles itself (copy relocations): then the program's copies
// are the ones in use, and the library's own are empty.
void* predefined(void* library, const char* name) {
  void* shown = dlsym(RTLD_DEFAULT, name);
  return shown != nullptr ? shown : dlsym(library, name);
}

}  // namespace

#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) static_cast<type>(predefined(library, #global))

#include "comm/mpi/bridge/adapter.hpp"

namespace tessera::comm::bridge {

Adapted adapt_openmpi(void* library) { return adapt(library, "openmpi"); }

}  // namespace tessera::comm::bridge
