// A single process without MPI. Communicators have one rank, so reductions and gathers return its own data.
#include <unistd.h>

#include <array>
#include <cstring>

#include "comm/mpi/bridge/table.hpp"

namespace tessera::comm::bridge {
namespace {

constexpr int unsupported = 1;  // no rank to send to
bool is_up = false;

template <std::size_t n> void put(char* to, int* length, const char (&text)[n]) {
  std::memcpy(to, text, n);
  *length = static_cast<int>(n) - 1;
}

std::size_t bytes_of(Datatype type, int n) {
  constexpr std::array<std::size_t, datatype_count> sizes = {0, 1, 1, 4, 2, 2, 1, 2, 4,
                                                             8, 1, 2, 4, 8, 4, 8, 8, 16};
  return sizes[static_cast<std::size_t>(type)] * static_cast<std::size_t>(n);
}

int copy(const void* in, void* out, std::size_t bytes) {
  if (in != in_place && in != out && bytes > 0) std::memmove(out, in, bytes);
  return 0;
}

int host_name(char* name, int* length) {
  if (gethostname(name, longest_processor_name) != 0) name[0] = '\0';
  name[longest_processor_name - 1] = '\0';
  *length = static_cast<int>(std::strlen(name));
  return 0;
}

template <class Handle> int release(Handle* handle) {
  *handle = nullptr;
  return 0;
}
int same(Comm comm, Comm* copy) {
  *copy = comm;
  return 0;
}
template <class... Any> int refuse(Any...) { return unsupported; }
template <class... Any> int nothing(Any...) { return 0; }

}  // namespace

constinit const Table alone = {
    .kind = "none",
    .Init_thread =
        [](int*, char***, int required, int* provided) {
          is_up = true;
          *provided = required;
          return 0;
        },
    .Initialized = [](int* flag) { return *flag = is_up, 0; },
    .Finalized = [](int* flag) { return *flag = 0, 0; },  // false, so that it may start again
    .Finalize = [] { return is_up = false, 0; },
    .Abort = [](Comm, int status) -> int { _exit(status); },
    .Get_processor_name = host_name,
    .Get_library_version = [](char* text, int* length) { return put(text, length, "none"), 0; },
    .Error_string = [](int, char* text,
                       int* length) { return put(text, length, "one process without MPI has no peers"), 0; },
    .Comm_rank = [](Comm, int* rank) { return *rank = 0, 0; },
    .Comm_size = [](Comm, int* size) { return *size = 1, 0; },
    .Comm_dup = same,
    .Comm_free = release<Comm>,
    .Comm_group = refuse<Comm, Group*>,
    .Comm_create_group = refuse<Comm, Group, int, Comm*>,
    .Comm_return_errors = nothing<Comm>,
    .Comm_split_shared = [](Comm comm, int, Comm* part) { return same(comm, part); },
    .Comm_test_inter = [](Comm, int* flag) { return *flag = 0, 0; },
    .Comm_c2f = nothing<Comm>,
    .comm_at = [](const void*) -> Comm { return nullptr; },
    .Group_incl = refuse<Group, int, const int*, Group*>,
    .Group_free = release<Group>,
    .Op_create = [](UserFunction*, int, Op* op) { return *op = nullptr, 0; },
    .Op_free = release<Op>,
    .Allreduce = [](const void* in, void* out, int n, Datatype type, Op,
                    Comm) { return copy(in, out, bytes_of(type, n)); },
    .Allgather = [](const void* in, int n, Datatype type, void* out, int, Datatype,
                    Comm) { return copy(in, out, bytes_of(type, n)); },
    .Allgatherv =
        [](const void* in, int n, Datatype type, void* out, const int*, const int* offsets, Datatype, Comm) {
          return copy(in, static_cast<char*>(out) + bytes_of(type, offsets[0]), bytes_of(type, n));
        },
    .Reduce_scatter = [](const void* in, void* out, const int* counts, Datatype type, Op,
                         Comm) { return copy(in, out, bytes_of(type, counts[0])); },
    .Bcast = nothing<void*, int, Datatype, int, Comm>,
    .Barrier = nothing<Comm>,
    .Ibcast = [](void*, int, Datatype, int, Comm, Request* request) { return release(request); },
    .Iallreduce =
        [](const void* in, void* out, int n, Datatype type, Op, Comm, Request* request) {
          release(request);
          return copy(in, out, bytes_of(type, n));
        },
    .Isend = refuse<const void*, int, Datatype, int, int, Comm, Request*>,
    .Irecv = refuse<void*, int, Datatype, int, int, Comm, Request*>,
    .Iprobe = [](int, int, Comm, int* found) { return *found = 0, 0; },
    .Wait = release<Request>,
    .Waitall = nothing<int, Request*>,
    .Waitany = [](int, Request*, int* which) { return *which = undefined, 0; },
    .Waitsome = [](int, Request*, int* count, int*) { return *count = undefined, 0; },
    .Testall = [](int, Request*, int* done) { return *done = 1, 0; },
    .Testsome = [](int, Request*, int* count, int*) { return *count = undefined, 0; },
    .Cancel = nothing<Request*>,
    .Request_free = release<Request>,
};

}  // namespace tessera::comm::bridge
