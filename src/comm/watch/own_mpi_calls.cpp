// MPI calls of the program itself, observed where they wait for other ranks: a rank that polls inside one
// computes nothing. Uses MPI's profiling interface: each name here calls the next definition of that name, so
// that preloaded tools still see it. The symbols are weak, so that wrappers of a tool or of the program take
// precedence. Calls on another path (a Python module that loads the MPI library by itself) are not seen; they
// count as work, which TESSERA_WORK_LIMIT ends.
#include <dlfcn.h>
#include <mpi.h>

#include "comm/watch/rank_status.hpp"

namespace {

using tessera::comm::OwnMpiCall;

// The next definition of the function: a preloaded tool's, else the MPI library's.
template <class Function> Function next_of(const char* name, Function of_library) {
  void* const next = dlsym(RTLD_NEXT, name);
  return next != nullptr ? reinterpret_cast<Function>(next) : of_library;
}

}  // namespace

#define TESSERA_SEEN(name, parameters, arguments)                               \
  extern "C" __attribute__((weak, visibility("default"))) int name parameters { \
    static const auto next = next_of(#name, &P##name);                          \
    const OwnMpiCall call(#name);                                               \
    return next arguments;                                                      \
  }

TESSERA_SEEN(MPI_Barrier, (MPI_Comm comm), (comm))
TESSERA_SEEN(MPI_Send, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
             (data, count, type, to, tag, comm))
TESSERA_SEEN(MPI_Ssend, (const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
             (data, count, type, to, tag, comm))
TESSERA_SEEN(MPI_Recv,
             (void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status),
             (data, count, type, from, tag, comm, status))
TESSERA_SEEN(MPI_Sendrecv,
             (const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in,
              int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status),
             (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status))
TESSERA_SEEN(MPI_Probe, (int from, int tag, MPI_Comm comm, MPI_Status* status), (from, tag, comm, status))
TESSERA_SEEN(MPI_Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status),
             (from, tag, comm, message, status))
TESSERA_SEEN(MPI_Wait, (MPI_Request * request, MPI_Status* status), (request, status))
TESSERA_SEEN(MPI_Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
             (count, requests, statuses))
TESSERA_SEEN(MPI_Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
             (count, requests, index, status))
TESSERA_SEEN(MPI_Waitsome,
             (int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]),
             (count, requests, done, indices, statuses))
TESSERA_SEEN(MPI_Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
             (data, count, type, root, comm))
TESSERA_SEEN(MPI_Reduce,
             (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
             (in, out, count, type, op, root, comm))
TESSERA_SEEN(MPI_Allreduce,
             (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (in, out, count, type, op, comm))
TESSERA_SEEN(MPI_Gather,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
              MPI_Datatype out_type, int root, MPI_Comm comm),
             (in, in_count, in_type, out, out_count, out_type, root, comm))
TESSERA_SEEN(MPI_Gatherv,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, const int counts[],
              const int starts[], MPI_Datatype out_type, int root, MPI_Comm comm),
             (in, in_count, in_type, out, counts, starts, out_type, root, comm))
TESSERA_SEEN(MPI_Scatter,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
              MPI_Datatype out_type, int root, MPI_Comm comm),
             (in, in_count, in_type, out, out_count, out_type, root, comm))
TESSERA_SEEN(MPI_Scatterv,
             (const void* in, const int counts[], const int starts[], MPI_Datatype in_type, void* out,
              int out_count, MPI_Datatype out_type, int root, MPI_Comm comm),
             (in, counts, starts, in_type, out, out_count, out_type, root, comm))
TESSERA_SEEN(MPI_Allgather,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
              MPI_Datatype out_type, MPI_Comm comm),
             (in, in_count, in_type, out, out_count, out_type, comm))
TESSERA_SEEN(MPI_Allgatherv,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, const int counts[],
              const int starts[], MPI_Datatype out_type, MPI_Comm comm),
             (in, in_count, in_type, out, counts, starts, out_type, comm))
TESSERA_SEEN(MPI_Alltoall,
             (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
              MPI_Datatype out_type, MPI_Comm comm),
             (in, in_count, in_type, out, out_count, out_type, comm))
TESSERA_SEEN(MPI_Alltoallv,
             (const void* in, const int in_counts[], const int in_starts[], MPI_Datatype in_type, void* out,
              const int out_counts[], const int out_starts[], MPI_Datatype out_type, MPI_Comm comm),
             (in, in_counts, in_starts, in_type, out, out_counts, out_starts, out_type, comm))
TESSERA_SEEN(MPI_Reduce_scatter,
             (const void* in, void* out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (in, out, counts, type, op, comm))
TESSERA_SEEN(MPI_Scan, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (in, out, count, type, op, comm))
TESSERA_SEEN(MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* copy), (comm, copy))
TESSERA_SEEN(MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* part), (comm, color, key, part))
TESSERA_SEEN(MPI_Win_fence, (int assertion, MPI_Win window), (assertion, window))
TESSERA_SEEN(MPI_File_open, (MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file),
             (comm, name, mode, info, file))

#undef TESSERA_SEEN
