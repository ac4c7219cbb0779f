// MPI as the bridge sees it: 64-bit handles that mean the same under every MPI, and the functions of one MPI
// as pointers. An adapter fills the table (adapter.hpp, once per binary interface); without MPI the table is
// `alone`. No name here is MPI's, so that this header and any <mpi.h> may be included together.
#pragma once
#include <cstdint>

#include "comm/mpi/yielding.hpp"

namespace tessera::comm::bridge {

// Handles: null is 0, small numbers are predefined constants, all others are the MPI's own handles.
using Comm = struct CommHandle*;
using Group = struct GroupHandle*;
using Request = struct RequestHandle*;
using Op = struct OpHandle*;

enum class Datatype : int {
  null,
  byte,
  character,
  integer,
  short_integer,
  unsigned_short,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float_,
  double_,
  complex_float,
  complex_double
};
constexpr int datatype_count = static_cast<int>(Datatype::complex_double) + 1;

enum class BuiltinOp : std::uintptr_t { null, sum, prod, max, min, land, lor, band, bor, bxor };
constexpr int builtin_op_count = static_cast<int>(BuiltinOp::bxor) + 1;

constexpr std::uintptr_t world_word = 1;  // the communicator of all ranks

using UserFunction = void(void*, void*, int*, Datatype*);

constexpr int undefined = -32766, any_source = -1, any_tag = -1, thread_funneled = 1;
constexpr int longest_processor_name = 256, longest_version = 8192, longest_error = 1024;
inline void* const in_place = reinterpret_cast<void*>(std::uintptr_t{1});

struct Table {
  const char* kind;  // "openmpi", "mpich", "mpiabi", or "none"

  int (*Init_thread)(int*, char***, int required, int* provided);
  int (*Initialized)(int*);
  int (*Finalized)(int*);
  int (*Finalize)();
  int (*Abort)(Comm, int status);
  int (*Get_processor_name)(char*, int* length);
  int (*Get_library_version)(char*, int* length);
  int (*Error_string)(int code, char*, int* length);

  int (*Comm_rank)(Comm, int*);
  int (*Comm_size)(Comm, int*);
  int (*Comm_dup)(Comm, Comm*);
  int (*Comm_free)(Comm*);
  int (*Comm_group)(Comm, Group*);
  int (*Comm_create_group)(Comm, Group, int tag, Comm*);
  int (*Comm_return_errors)(Comm);
  int (*Comm_split_shared)(Comm, int key, Comm*);
  int (*Comm_test_inter)(Comm, int*);
  int (*Comm_c2f)(Comm);
  Comm (*comm_at)(const void* address);  // of an application's own MPI_Comm
  int (*Group_incl)(Group, int n, const int* ranks, Group*);
  int (*Group_free)(Group*);
  int (*Op_create)(UserFunction*, int commutes, Op*);
  int (*Op_free)(Op*);

  int (*Allreduce)(const void*, void*, int, Datatype, Op, Comm);
  int (*Allgather)(const void*, int, Datatype, void*, int, Datatype, Comm);
  int (*Allgatherv)(const void*, int, Datatype, void*, const int*, const int*, Datatype, Comm);
  int (*Reduce_scatter)(const void*, void*, const int*, Datatype, Op, Comm);
  int (*Bcast)(void*, int, Datatype, int root, Comm);
  int (*Barrier)(Comm);
  int (*Ibcast)(void*, int, Datatype, int root, Comm, Request*);
  int (*Iallreduce)(const void*, void*, int, Datatype, Op, Comm, Request*);

  int (*Isend)(const void*, int, Datatype, int to, int tag, Comm, Request*);
  int (*Irecv)(void*, int, Datatype, int from, int tag, Comm, Request*);
  int (*Iprobe)(int from, int tag, Comm, int* found);
  int (*Wait)(Request*);
  int (*Waitall)(int, Request*);
  int (*Waitany)(int, Request*, int*);
  int (*Waitsome)(int, Request*, int* count, int* which);
  int (*Testall)(int, Request*, int* done);
  int (*Testsome)(int, Request*, int* count, int* which);
  int (*Cancel)(Request*);
  int (*Request_free)(Request*);
};

extern const Table alone;  // one process, no MPI

// The table of the MPI behind this library handle (dlopen's), or null and the name of the missing function.
struct Adapted {
  const Table* table = nullptr;
  const char* missing = nullptr;
};
Adapted adapt_openmpi(void* library);
Adapted adapt_mpich(void* library);
Adapted adapt_standard(void* library);

// The table in use: `alone` (one process without MPI) until choose_mpi has found an MPI.
inline constinit const Table* table = &alone;
inline constinit void* library = nullptr;  // dlopen's handle of that MPI

}  // namespace tessera::comm::bridge
