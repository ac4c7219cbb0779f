// MPI's names over the bridge's table: each MPI call in comm is an indirect call here. Statuses do not exist
// (only MPI_STATUS_IGNORE), since comm reads none.
#pragma once
#include <dlfcn.h>

#include "comm/mpi/bridge/table.hpp"

namespace tessera::comm {

using MPI_Comm = bridge::Comm;
using MPI_Group = bridge::Group;
using MPI_Request = bridge::Request;
using MPI_Op = bridge::Op;
using MPI_Datatype = bridge::Datatype;
using MPI_User_function = bridge::UserFunction;
struct MPI_Status;
enum class MPI_Info { null };
enum class MPI_Errhandler { errors_return };
enum class MPI_Split { shared };

constexpr MPI_Comm MPI_COMM_NULL = nullptr;
inline const MPI_Comm MPI_COMM_WORLD = reinterpret_cast<MPI_Comm>(bridge::world_word);
constexpr MPI_Request MPI_REQUEST_NULL = nullptr;
constexpr MPI_Status* MPI_STATUS_IGNORE = nullptr;
constexpr MPI_Status* MPI_STATUSES_IGNORE = nullptr;
constexpr auto MPI_INFO_NULL = MPI_Info::null;
constexpr auto MPI_ERRORS_RETURN = MPI_Errhandler::errors_return;
constexpr auto MPI_COMM_TYPE_SHARED = MPI_Split::shared;
inline void* const MPI_IN_PLACE = bridge::in_place;
constexpr int MPI_SUCCESS = 0, MPI_UNDEFINED = bridge::undefined, MPI_ANY_SOURCE = bridge::any_source,
              MPI_ANY_TAG = bridge::any_tag, MPI_THREAD_FUNNELED = bridge::thread_funneled,
              MPI_MAX_PROCESSOR_NAME = bridge::longest_processor_name,
              MPI_MAX_LIBRARY_VERSION_STRING = bridge::longest_version,
              MPI_MAX_ERROR_STRING = bridge::longest_error;

constexpr auto MPI_BYTE = MPI_Datatype::byte, MPI_CHAR = MPI_Datatype::character,
               MPI_INT = MPI_Datatype::integer, MPI_SHORT = MPI_Datatype::short_integer,
               MPI_UNSIGNED_SHORT = MPI_Datatype::unsigned_short, MPI_INT8_T = MPI_Datatype::int8,
               MPI_INT16_T = MPI_Datatype::int16, MPI_INT32_T = MPI_Datatype::int32,
               MPI_INT64_T = MPI_Datatype::int64, MPI_UINT8_T = MPI_Datatype::uint8,
               MPI_UINT16_T = MPI_Datatype::uint16, MPI_UINT32_T = MPI_Datatype::uint32,
               MPI_UINT64_T = MPI_Datatype::uint64, MPI_FLOAT = MPI_Datatype::float_,
               MPI_DOUBLE = MPI_Datatype::double_, MPI_C_FLOAT_COMPLEX = MPI_Datatype::complex_float,
               MPI_C_DOUBLE_COMPLEX = MPI_Datatype::complex_double;

namespace bridge {
inline Op op_of(BuiltinOp op) { return reinterpret_cast<Op>(static_cast<std::uintptr_t>(op)); }
}  // namespace bridge
constexpr MPI_Op MPI_OP_NULL = nullptr;
inline const MPI_Op MPI_SUM = op_of(bridge::BuiltinOp::sum), MPI_PROD = op_of(bridge::BuiltinOp::prod),
                    MPI_MAX = op_of(bridge::BuiltinOp::max), MPI_MIN = op_of(bridge::BuiltinOp::min),
                    MPI_LAND = op_of(bridge::BuiltinOp::land), MPI_LOR = op_of(bridge::BuiltinOp::lor),
                    MPI_BAND = op_of(bridge::BuiltinOp::band), MPI_BOR = op_of(bridge::BuiltinOp::bor),
                    MPI_BXOR = op_of(bridge::BuiltinOp::bxor);

inline MPI_Comm comm_at(const void* address) { return bridge::table->comm_at(address); }

// Must precede the first MPI call. Chooses the MPI that the process has loaded, else the one that TESSERA_MPI
// names, else the launcher's, else none (one process). ArgumentError: two MPIs, an MPI that is not the
// launcher's, or a launcher whose MPI is not found.
void choose_mpi();

inline void* mpi_symbol(const char* name) {
  return bridge::library == nullptr ? nullptr : dlsym(bridge::library, name);
}

inline void set_shared_cores(bool shared) { shares_cores = shared; }

// The same signatures as in the table.
inline int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return bridge::table->Init_thread(argc, argv, required, provided);
}
inline int MPI_Initialized(int* flag) { return bridge::table->Initialized(flag); }
inline int MPI_Finalized(int* flag) { return bridge::table->Finalized(flag); }
inline int MPI_Finalize() { return bridge::table->Finalize(); }
inline int MPI_Abort(MPI_Comm comm, int status) { return bridge::table->Abort(comm, status); }
inline int MPI_Get_processor_name(char* name, int* length) {
  return bridge::table->Get_processor_name(name, length);
}
inline int MPI_Get_library_version(char* text, int* length) {
  return bridge::table->Get_library_version(text, length);
}
inline int MPI_Error_string(int code, char* text, int* length) {
  return bridge::table->Error_string(code, text, length);
}

inline int MPI_Comm_rank(MPI_Comm comm, int* rank) { return bridge::table->Comm_rank(comm, rank); }
inline int MPI_Comm_size(MPI_Comm comm, int* size) { return bridge::table->Comm_size(comm, size); }
inline int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) { return bridge::table->Comm_dup(comm, copy); }
inline int MPI_Comm_free(MPI_Comm* comm) { return bridge::table->Comm_free(comm); }
inline int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) { return bridge::table->Comm_group(comm, group); }
inline int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return bridge::table->Comm_create_group(comm, group, tag, made);
}
inline int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler) {
  return bridge::table->Comm_return_errors(comm);
}
inline int MPI_Comm_split_type(MPI_Comm comm, MPI_Split, int key, MPI_Info, MPI_Comm* part) {
  return bridge::table->Comm_split_shared(comm, key, part);
}
inline int MPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  return bridge::table->Comm_test_inter(comm, flag);
}
inline int MPI_Comm_c2f(MPI_Comm comm) { return bridge::table->Comm_c2f(comm); }
inline int MPI_Group_incl(MPI_Group group, int n, const int* ranks, MPI_Group* made) {
  return bridge::table->Group_incl(group, n, ranks, made);
}
inline int MPI_Group_free(MPI_Group* group) { return bridge::table->Group_free(group); }
inline int MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* op) {
  return bridge::table->Op_create(function, commutes, op);
}
inline int MPI_Op_free(MPI_Op* op) { return bridge::table->Op_free(op); }

inline int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return bridge::table->Allreduce(in, out, n, type, op, comm);
}
inline int MPI_Allgather(const void* in, int n, MPI_Datatype type, void* out, int each, MPI_Datatype out_type,
                         MPI_Comm comm) {
  return bridge::table->Allgather(in, n, type, out, each, out_type, comm);
}
inline int MPI_Allgatherv(const void* in, int n, MPI_Datatype type, void* out, const int* counts,
                          const int* offsets, MPI_Datatype out_type, MPI_Comm comm) {
  return bridge::table->Allgatherv(in, n, type, out, counts, offsets, out_type, comm);
}
inline int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm) {
  return bridge::table->Reduce_scatter(in, out, counts, type, op, comm);
}
inline int MPI_Bcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  return bridge::table->Bcast(data, n, type, root, comm);
}
inline int MPI_Barrier(MPI_Comm comm) { return bridge::table->Barrier(comm); }
inline int MPI_Ibcast(void* data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return bridge::table->Ibcast(data, n, type, root, comm, request);
}
inline int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                          MPI_Request* request) {
  return bridge::table->Iallreduce(in, out, n, type, op, comm, request);
}

inline int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request* request) {
  return bridge::table->Isend(data, n, type, to, tag, comm, request);
}
inline int MPI_Irecv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request* request) {
  return bridge::table->Irecv(data, n, type, from, tag, comm, request);
}
inline int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status*) {
  return bridge::table->Iprobe(from, tag, comm, found);
}
inline int MPI_Wait(MPI_Request* request, MPI_Status*) { return bridge::table->Wait(request); }
inline int MPI_Waitall(int n, MPI_Request* requests, MPI_Status*) {
  return bridge::table->Waitall(n, requests);
}
inline int MPI_Waitany(int n, MPI_Request* requests, int* which, MPI_Status*) {
  return bridge::table->Waitany(n, requests, which);
}
inline int MPI_Waitsome(int n, MPI_Request* requests, int* count, int* which, MPI_Status*) {
  return bridge::table->Waitsome(n, requests, count, which);
}
inline int MPI_Testall(int n, MPI_Request* requests, int* done, MPI_Status*) {
  return bridge::table->Testall(n, requests, done);
}
inline int MPI_Testsome(int n, MPI_Request* requests, int* count, int* which, MPI_Status*) {
  return bridge::table->Testsome(n, requests, count, which);
}
inline int MPI_Cancel(MPI_Request* request) { return bridge::table->Cancel(request); }
inline int MPI_Request_free(MPI_Request* request) { return bridge::table->Request_free(request); }

}  // namespace tessera::comm
