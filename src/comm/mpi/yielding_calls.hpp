// MPI's blocking calls. A linked MPICH keeps its core while it waits (yielding.hpp): its waits are polled,
// and its collectives are started and polled where ranks share cores. The bridge does so itself.
#pragma once
#include "comm/mpi/mpi_api.hpp"
#include "comm/mpi/yielding.hpp"

namespace tessera::comm::yielding {

#if defined(OPEN_MPI) || defined(TESSERA_MPI_BRIDGE)
constexpr bool keeps_its_core = false;
#else
constexpr bool keeps_its_core = true;
#endif

// The polls take `auto`, because the bridge has no names for what it never calls.
inline int Wait(MPI_Request* request, MPI_Status* status) {
  return wait_by<keeps_its_core>([&] { return MPI_Wait(request, status); },
                                 [&](auto* done) { return MPI_Test(request, done, status); });
}
inline int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return wait_by<keeps_its_core>([&] { return MPI_Waitall(count, requests, statuses); },
                                 [&](auto* done) { return MPI_Testall(count, requests, done, statuses); });
}
inline int Waitany(int count, MPI_Request* requests, int* which, MPI_Status* status) {
  return wait_by<keeps_its_core>(
      [&] { return MPI_Waitany(count, requests, which, status); },
      [&](auto* done) { return MPI_Testany(count, requests, which, done, status); });
}
inline int Waitsome(int count, MPI_Request* requests, int* finished, int* which, MPI_Status* statuses) {
  return wait_by<keeps_its_core>([&] { return MPI_Waitsome(count, requests, finished, which, statuses); },
                                 [&](auto* done) {
                                   const int code = MPI_Testsome(count, requests, finished, which, statuses);
                                   *done = *finished != 0;  // MPI_UNDEFINED: none is left
                                   return code;
                                 });
}

template <class Whole, class Start> int collective(Whole whole, Start start) {
  if constexpr (keeps_its_core) {
    if (shares_cores) {
      MPI_Request request;
      const int code = start(&request);
      return code == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : code;
    }
  }
  return whole();
}

#define TESSERA_COLLECTIVE(function, start_function)                                    \
  template <class... Args> int function(Args... args) {                                 \
    return collective([&] { return MPI_##function(args...); },                          \
                      [&](auto* request) { return start_function(args..., request); }); \
  }
TESSERA_COLLECTIVE(Allreduce, MPI_Iallreduce)
TESSERA_COLLECTIVE(Allgather, MPI_Iallgather)
TESSERA_COLLECTIVE(Allgatherv, MPI_Iallgatherv)
TESSERA_COLLECTIVE(Reduce_scatter, MPI_Ireduce_scatter)
TESSERA_COLLECTIVE(Bcast, MPI_Ibcast)
TESSERA_COLLECTIVE(Barrier, MPI_Ibarrier)
#undef TESSERA_COLLECTIVE

}  // namespace tessera::comm::yielding
