// The bridge's table over one MPI, whose <mpi.h> the including file has read. Included by one file per binary
// interface: nothing of MPI is linked, its functions are looked up by name in the loaded library.
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/mpi/bridge/table.hpp"

namespace tessera::comm::bridge {
namespace {

#ifdef OPEN_MPI
#define TESSERA_MPI_FORTRAN(X) X(Comm_c2f)
#else  // a macro, or nothing to convert
#define TESSERA_MPI_FORTRAN(X)
#endif

// Every function that is looked up, by MPI's name without the prefix. clang-format does not terminate on this
// list.
// clang-format off
#define TESSERA_MPI_FUNCTIONS(X)                                                                            \
  X(Init_thread) X(Initialized) X(Finalized) X(Finalize) X(Abort) X(Get_processor_name)                     \
  X(Get_library_version) X(Error_string) X(Comm_rank) X(Comm_size) X(Comm_dup) X(Comm_free)                 \
  X(Comm_group) X(Comm_create_group) X(Comm_set_errhandler) X(Comm_split_type) X(Comm_test_inter)           \
  X(Group_incl) X(Group_free) X(Op_create) X(Op_free) X(Allreduce) X(Allgather) X(Allgatherv)               \
  X(Reduce_scatter) X(Bcast) X(Barrier) X(Ibcast) X(Iallreduce) X(Isend) X(Irecv) X(Iprobe) X(Wait)         \
  X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome) X(Cancel) X(Request_free)     \
  X(Ibarrier) X(Iallgather) X(Iallgatherv) X(Ireduce_scatter) TESSERA_MPI_FORTRAN(X)
// clang-format on

struct Native {
#define X(name) decltype(&::MPI_##name) name;
  TESSERA_MPI_FUNCTIONS(X)
#undef X
  MPI_Comm world, null_comm;
  MPI_Group null_group;
  MPI_Request null_request;
  MPI_Errhandler errors_return;
  MPI_Info null_info;
  std::array<MPI_Datatype, datatype_count> types;
  std::array<MPI_Op, builtin_op_count> ops;
};
Native mpi;  // filled once, by the adapt function of this interface

const char* find_functions(void* library) {
#define X(name)                                                                  \
  mpi.name = reinterpret_cast<decltype(mpi.name)>(dlsym(library, "MPI_" #name)); \
  if (mpi.name == nullptr) return "MPI_" #name;
  TESSERA_MPI_FUNCTIONS(X)
#undef X
  return nullptr;
}

void find_constants([[maybe_unused]] void* library) {
  mpi.world = MPI_COMM_WORLD;
  mpi.null_comm = MPI_COMM_NULL;
  mpi.null_group = MPI_GROUP_NULL;
  mpi.null_request = MPI_REQUEST_NULL;
  mpi.errors_return = MPI_ERRORS_RETURN;
  mpi.null_info = MPI_INFO_NULL;
  mpi.types = {
      MPI_DATATYPE_NULL, MPI_BYTE,     MPI_CHAR,    MPI_INT,     MPI_SHORT,           MPI_UNSIGNED_SHORT,
      MPI_INT8_T,        MPI_INT16_T,  MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T,         MPI_UINT16_T,
      MPI_UINT32_T,      MPI_UINT64_T, MPI_FLOAT,   MPI_DOUBLE,  MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX};
  mpi.ops = {MPI_OP_NULL, MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN,
             MPI_LAND,    MPI_LOR, MPI_BAND, MPI_BOR, MPI_BXOR};
}

static_assert(MPI_MAX_PROCESSOR_NAME <= longest_processor_name && MPI_MAX_ERROR_STRING <= longest_error &&
              MPI_MAX_LIBRARY_VERSION_STRING <= longest_version);
static_assert(MPI_SUCCESS == 0);

// ---- handles as words: MPI's are pointers or ints ----

template <class Handle> std::uintptr_t word(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<unsigned>(handle);
}
template <class Handle> Handle of_word(std::uintptr_t word) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<Handle>(word);
  else
    return static_cast<Handle>(static_cast<unsigned>(word));
}

MPI_Comm native(Comm comm) {
  const auto w = word(comm);
  return w == 0 ? mpi.null_comm : w == world_word ? mpi.world : of_word<MPI_Comm>(w);
}
MPI_Group native(Group group) { return of_word<MPI_Group>(word(group)); }
MPI_Request native(Request request) {
  return request == nullptr ? mpi.null_request : of_word<MPI_Request>(word(request));
}
MPI_Datatype native(Datatype type) { return mpi.types[static_cast<std::size_t>(type)]; }
MPI_Op native(Op op) {
  const auto w = word(op);
  return w < builtin_op_count ? mpi.ops[w] : of_word<MPI_Op>(w);
}
const void* native_buffer(const void* data) { return data == in_place ? MPI_IN_PLACE : data; }

// By name instead of as overloads, since MPICH's handles are all of type int.
Comm own_comm(MPI_Comm comm) { return comm == mpi.null_comm ? nullptr : of_word<Comm>(word(comm)); }
Request own_request(MPI_Request request) {
  return request == mpi.null_request ? nullptr : of_word<Request>(word(request));
}

// The requests of a call that waits for many of them: converted to MPI's own handles for the call, and back
// to the bridge's afterwards.
class Requests {
 public:
  Requests(int n, Request* own) : n_(static_cast<std::size_t>(n)), own_(own) {
    all_ = few_.data();
    if (n_ > few_.size()) {
      many_.resize(n_);
      all_ = many_.data();
    }
    for (std::size_t i = 0; i < n_; ++i) all_[i] = native(own_[i]);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests() {
    for (std::size_t i = 0; i < n_; ++i) own_[i] = own_request(all_[i]);
  }
  MPI_Request* data() { return all_; }

 private:
  std::size_t n_;
  Request* own_;
  std::array<MPI_Request, 64> few_;
  std::vector<MPI_Request> many_;
  MPI_Request* all_ = nullptr;
};

// ---- the caller's reduction functions: MPI calls them with its own datatype ----

constexpr std::size_t op_slots = 32;
std::array<UserFunction*, op_slots> user_functions = {};
std::array<MPI_Op, op_slots> user_ops;

Datatype own_type(MPI_Datatype type) {
  for (std::size_t i = 1; i < mpi.types.size(); ++i)
    if (mpi.types[i] == type) return static_cast<Datatype>(i);
  return Datatype::null;
}

template <std::size_t slot> void call_user(void* in, void* inout, int* count, MPI_Datatype* type) {
  Datatype name = own_type(*type);
  user_functions[slot](in, inout, count, &name);
}

template <std::size_t... slots>
MPI_User_function* caller_of(std::size_t slot, std::index_sequence<slots...>) {
  static constexpr std::array<MPI_User_function*, sizeof...(slots)> callers = {call_user<slots>...};
  return callers[slot];
}

int create_op(UserFunction* function, int commutes, Op* made) {
  std::size_t slot = 0;
  while (slot < op_slots && user_functions[slot] != nullptr) ++slot;
  if (slot == op_slots) return MPI_ERR_OP;
  MPI_Op op;
  const int code = mpi.Op_create(caller_of(slot, std::make_index_sequence<op_slots>()), commutes, &op);
  if (code != MPI_SUCCESS) return code;
  user_functions[slot] = function;
  user_ops[slot] = op;
  *made = of_word<Op>(word(op));
  return code;
}

int free_op(Op* op) {
  auto handle = native(*op);
  for (std::size_t slot = 0; slot < op_slots; ++slot)
    if (user_functions[slot] != nullptr && user_ops[slot] == handle) user_functions[slot] = nullptr;
  *op = nullptr;
  return mpi.Op_free(&handle);
}

// ---- the table ----

int count_of(int native_count) { return native_count == MPI_UNDEFINED ? undefined : native_count; }

// A call that creates a handle: calls native(&handle) and stores the bridge's own handle in *made.
template <class NativeHandle, class Own, class Call> int make(Own* made, Call call) {
  NativeHandle handle;
  const int code = call(&handle);
  if (code == MPI_SUCCESS) {
    if constexpr (std::is_same_v<Own, Group>)
      *made = of_word<Group>(word(handle));
    else if constexpr (std::is_same_v<Own, Comm>)
      *made = own_comm(handle);
    else
      *made = own_request(handle);
  }
  return code;
}

int abort_job(Comm comm, int status) { return mpi.Abort(native(comm), status); }
int comm_free(Comm* comm) {
  auto handle = native(*comm);
  const int code = mpi.Comm_free(&handle);
  *comm = own_comm(handle);
  return code;
}
int group_free(Group* group) {
  auto handle = native(*group);
  *group = nullptr;
  return mpi.Group_free(&handle);
}
int to_fortran(Comm comm) {
#ifdef OPEN_MPI
  return mpi.Comm_c2f(native(comm));
#else
  return static_cast<int>(word(native(comm)));
#endif
}
Comm at_address(const void* address) { return own_comm(*static_cast<const MPI_Comm*>(address)); }

template <class Call> int on_one(Request* request, Call call) {
  auto handle = native(*request);
  const int code = call(&handle);
  *request = own_request(handle);
  return code;
}

// ---- waits that give the core up ----

#ifdef OPEN_MPI
constexpr bool keeps_its_core = false;
#else
constexpr bool keeps_its_core = true;
#endif

int wait_for(MPI_Request* request) {
  return wait_by<keeps_its_core>([&] { return mpi.Wait(request, MPI_STATUS_IGNORE); },
                                 [&](int* done) { return mpi.Test(request, done, MPI_STATUS_IGNORE); });
}

// Runs a blocking collective by one call; where ranks share cores, starts it and waits for it with
// wait_for().
template <class Whole, class Start> int collective(Whole whole, Start start) {
  if (!keeps_its_core || !shares_cores) return whole();
  MPI_Request request;
  const int code = start(&request);
  return code == MPI_SUCCESS ? wait_for(&request) : code;
}

Table make_table(const char* kind) {
  Table t = {};
  t.kind = kind;
  t.Init_thread = [](int* argc, char*** argv, int, int* provided) {
    return mpi.Init_thread(argc, argv, MPI_THREAD_FUNNELED, provided);
  };
  t.Initialized = mpi.Initialized;
  t.Finalized = mpi.Finalized;
  t.Finalize = mpi.Finalize;
  t.Abort = abort_job;
  t.Get_processor_name = mpi.Get_processor_name;
  t.Get_library_version = mpi.Get_library_version;
  t.Error_string = mpi.Error_string;
  return t;
}

void add_communicators(Table& t) {
  t.Comm_rank = [](Comm comm, int* rank) { return mpi.Comm_rank(native(comm), rank); };
  t.Comm_size = [](Comm comm, int* size) { return mpi.Comm_size(native(comm), size); };
  t.Comm_dup = [](Comm comm, Comm* copy) {
    return make<MPI_Comm>(copy, [&](MPI_Comm* made) { return mpi.Comm_dup(native(comm), made); });
  };
  t.Comm_free = comm_free;
  t.Comm_group = [](Comm comm, Group* group) {
    return make<MPI_Group>(group, [&](MPI_Group* made) { return mpi.Comm_group(native(comm), made); });
  };
  t.Comm_create_group = [](Comm comm, Group group, int tag, Comm* part) {
    return make<MPI_Comm>(
        part, [&](MPI_Comm* made) { return mpi.Comm_create_group(native(comm), native(group), tag, made); });
  };
  t.Comm_return_errors = [](Comm comm) { return mpi.Comm_set_errhandler(native(comm), mpi.errors_return); };
  t.Comm_split_shared = [](Comm comm, int key, Comm* part) {
    return make<MPI_Comm>(part, [&](MPI_Comm* made) {
      return mpi.Comm_split_type(native(comm), MPI_COMM_TYPE_SHARED, key, mpi.null_info, made);
    });
  };
  t.Comm_test_inter = [](Comm comm, int* flag) { return mpi.Comm_test_inter(native(comm), flag); };
  t.Comm_c2f = to_fortran;
  t.comm_at = at_address;
  t.Group_incl = [](Group group, int n, const int* ranks, Group* part) {
    return make<MPI_Group>(part,
                           [&](MPI_Group* made) { return mpi.Group_incl(native(group), n, ranks, made); });
  };
  t.Group_free = group_free;
  t.Op_create = create_op;
  t.Op_free = free_op;
}

void add_collectives(Table& t) {
  t.Allreduce = [](const void* in, void* out, int n, Datatype type, Op op, Comm comm) {
    const auto call = [&](auto function, auto... request) {
      return function(native_buffer(in), out, n, native(type), native(op), native(comm), request...);
    };
    return collective([&] { return call(mpi.Allreduce); },
                      [&](MPI_Request* made) { return call(mpi.Iallreduce, made); });
  };
  t.Allgather = [](const void* in, int n, Datatype type, void* out, int each, Datatype out_type, Comm comm) {
    const auto call = [&](auto function, auto... request) {
      return function(native_buffer(in), n, native(type), out, each, native(out_type), native(comm),
                      request...);
    };
    return collective([&] { return call(mpi.Allgather); },
                      [&](MPI_Request* made) { return call(mpi.Iallgather, made); });
  };
  t.Allgatherv = [](const void* in, int n, Datatype type, void* out, const int* counts, const int* offsets,
                    Datatype out_type, Comm comm) {
    const auto call = [&](auto function, auto... request) {
      return function(native_buffer(in), n, native(type), out, counts, offsets, native(out_type),
                      native(comm), request...);
    };
    return collective([&] { return call(mpi.Allgatherv); },
                      [&](MPI_Request* made) { return call(mpi.Iallgatherv, made); });
  };
  t.Reduce_scatter = [](const void* in, void* out, const int* counts, Datatype type, Op op, Comm comm) {
    const auto call = [&](auto function, auto... request) {
      return function(native_buffer(in), out, counts, native(type), native(op), native(comm), request...);
    };
    return collective([&] { return call(mpi.Reduce_scatter); },
                      [&](MPI_Request* made) { return call(mpi.Ireduce_scatter, made); });
  };
  t.Bcast = [](void* data, int n, Datatype type, int root, Comm comm) {
    const auto call = [&](auto function, auto... request) {
      return function(data, n, native(type), root, native(comm), request...);
    };
    return collective([&] { return call(mpi.Bcast); },
                      [&](MPI_Request* made) { return call(mpi.Ibcast, made); });
  };
  t.Barrier = [](Comm comm) {
    return collective([&] { return mpi.Barrier(native(comm)); },
                      [&](MPI_Request* made) { return mpi.Ibarrier(native(comm), made); });
  };
  t.Ibcast = [](void* data, int n, Datatype type, int root, Comm comm, Request* request) {
    return make<MPI_Request>(request, [&](MPI_Request* made) {
      return mpi.Ibcast(data, n, native(type), root, native(comm), made);
    });
  };
  t.Iallreduce = [](const void* in, void* out, int n, Datatype type, Op op, Comm comm, Request* request) {
    return make<MPI_Request>(request, [&](MPI_Request* made) {
      return mpi.Iallreduce(native_buffer(in), out, n, native(type), native(op), native(comm), made);
    });
  };
}

void add_messages(Table& t) {
  t.Isend = [](const void* data, int n, Datatype type, int to, int tag, Comm comm, Request* request) {
    return make<MPI_Request>(request, [&](MPI_Request* made) {
      return mpi.Isend(data, n, native(type), to, tag, native(comm), made);
    });
  };
  t.Irecv = [](void* data, int n, Datatype type, int from, int tag, Comm comm, Request* request) {
    return make<MPI_Request>(request, [&](MPI_Request* made) {
      return mpi.Irecv(data, n, native(type), from, tag, native(comm), made);
    });
  };
  t.Iprobe = [](int from, int tag, Comm comm, int* found) {
    return mpi.Iprobe(from == any_source ? MPI_ANY_SOURCE : from, tag == any_tag ? MPI_ANY_TAG : tag,
                      native(comm), found, MPI_STATUS_IGNORE);
  };
  t.Cancel = [](Request* request) { return on_one(request, mpi.Cancel); };
  t.Request_free = [](Request* request) { return on_one(request, mpi.Request_free); };
}

void add_waits(Table& t) {
  t.Wait = [](Request* request) { return on_one(request, wait_for); };
  t.Waitall = [](int n, Request* own) {
    Requests requests(n, own);
    return wait_by<keeps_its_core>(
        [&] { return mpi.Waitall(n, requests.data(), MPI_STATUSES_IGNORE); },
        [&](int* done) { return mpi.Testall(n, requests.data(), done, MPI_STATUSES_IGNORE); });
  };
  t.Waitany = [](int n, Request* own, int* which) {
    Requests requests(n, own);
    const int code = wait_by<keeps_its_core>(
        [&] { return mpi.Waitany(n, requests.data(), which, MPI_STATUS_IGNORE); },
        [&](int* done) { return mpi.Testany(n, requests.data(), which, done, MPI_STATUS_IGNORE); });
    *which = count_of(*which);
    return code;
  };
  t.Waitsome = [](int n, Request* own, int* count, int* which) {
    Requests requests(n, own);
    const int code = wait_by<keeps_its_core>(
        [&] { return mpi.Waitsome(n, requests.data(), count, which, MPI_STATUSES_IGNORE); },
        [&](int* done) {
          const int failed = mpi.Testsome(n, requests.data(), count, which, MPI_STATUSES_IGNORE);
          *done = *count != 0;  // MPI_UNDEFINED: none is left
          return failed;
        });
    *count = count_of(*count);
    return code;
  };
  t.Testall = [](int n, Request* requests, int* done) {
    return mpi.Testall(n, Requests(n, requests).data(), done, MPI_STATUSES_IGNORE);
  };
  t.Testsome = [](int n, Request* requests, int* count, int* which) {
    const int code = mpi.Testsome(n, Requests(n, requests).data(), count, which, MPI_STATUSES_IGNORE);
    *count = count_of(*count);
    return code;
  };
}

Adapted adapt(void* library, const char* kind) {
  static Table table;
  if (const char* missing = find_functions(library)) return {nullptr, missing};
  find_constants(library);
  table = make_table(kind);
  add_communicators(table);
  add_collectives(table);
  add_messages(table);
  add_waits(table);
  return {&table, nullptr};
}

#undef TESSERA_MPI_FUNCTIONS
#undef TESSERA_MPI_FORTRAN

}  // namespace
}  // namespace tessera::comm::bridge
