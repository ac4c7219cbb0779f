/// @file
/// tessera inside an application that uses MPI itself. The only public header that includes <mpi.h>.
///
///   tessera::Runtime runtime = tessera::Runtime::attach(my_communicator);
#pragma once
#include <mpi.h>

#include <tessera/runtime.hpp>

namespace tessera {

/// Collective over the communicator, whose ranks become the devices. It is duplicated; its error handler is
/// unchanged, and it may be freed while the runtime exists. ArgumentError: MPI is not running; MPI_COMM_NULL;
/// an inter-communicator.
template <> inline Runtime Runtime::attach<MPI_Comm>(MPI_Comm comm, RuntimeOptions options) {
  return Runtime(Attach{}, &comm, options);
}

}  // namespace tessera
