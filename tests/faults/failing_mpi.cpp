// A PMPI library that makes MPI misbehave within its standard, or fail. Preloaded into the ranks of a job:
//
//   mpirun -x LD_PRELOAD=libfailing_mpi.so -x TEST_MPI_...=... -n 3 program
//
//   TEST_MPI_FAIL=MPI_Isend:4:1   rank 1's 4th MPI_Isend is skipped, returns MPI_ERR_OTHER; "any" counts all
//   TEST_MPI_COUNT=1              rank 1 prints how many calls "any" counts, per kind, when MPI ends
//   TEST_MPI_DELAY_US=200         each call is delayed by a random time up to this
//   TEST_MPI_SHUFFLE=1            completed requests are reported in random order, one by one, and late
//   TEST_MPI_LEAKS=1              objects not freed when MPI ends are reported, and the rank exits with 98
//   TEST_MPI_SEED=7
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "environment.hpp"

namespace {

int number(const char* name) { return std::atoi(setting(name).c_str()); }

struct Plan {
  std::string kind;  // kind of the call that fails
  long nth = 0;
  int rank = -1;
  bool counts = number("TEST_MPI_COUNT") != 0, shuffles = number("TEST_MPI_SHUFFLE") != 0,
       leaks = number("TEST_MPI_LEAKS") != 0;
  int delay_us = number("TEST_MPI_DELAY_US");
  std::mt19937 random{static_cast<unsigned>(1000 * number("TEST_MPI_SEED") + own_rank())};
  std::map<std::string, long> calls;
  long all_calls = 0;
  long requests = 0, communicators = 0, groups = 0, ops = 0, types = 0;  // created and not freed

  Plan() {
    const std::string text = setting("TEST_MPI_FAIL");
    const auto first = text.find(':'), last = text.rfind(':');
    if (first == std::string::npos || first == last) return;
    kind = text.substr(0, first);
    nth = std::atol(text.c_str() + first + 1);
    rank = std::atoi(text.c_str() + last + 1);
  }
  bool tosses() { return random() % 2 == 0; }
};
Plan& plan() {
  static Plan* instance = new Plan;
  return *instance;
}

// Called first in every wrapper: whether this call fails.
bool fails(const char* call) {
  Plan& p = plan();
  if (p.delay_us > 0 && p.random() % 4 == 0) usleep(p.random() % static_cast<unsigned>(p.delay_us));
  const long of_kind = ++p.calls[call], of_all = ++p.all_calls;
  if (p.rank != own_rank()) return false;
  return (p.kind == "any" && of_all == p.nth) || (p.kind == call && of_kind == p.nth);
}

int count_open(int n, const MPI_Request* requests) {
  return static_cast<int>(
      std::count_if(requests, requests + n, [](MPI_Request r) { return r != MPI_REQUEST_NULL; }));
}

// Counts the requests of a list that a call completed.
template <class Call> int completing(int n, MPI_Request* requests, Call&& call) {
  const int before = count_open(n, requests), code = call();
  plan().requests -= before - count_open(n, requests);
  return code;
}

int opened(int code, const MPI_Request* request) {
  if (code == MPI_SUCCESS && *request != MPI_REQUEST_NULL) ++plan().requests;
  return code;
}
int made(int code, const MPI_Comm* comm) {
  if (code == MPI_SUCCESS && *comm != MPI_COMM_NULL) ++plan().communicators;
  return code;
}

// Completes one request of the list, in random order of trial. -1: none was open, or none has completed.
int complete_one(int n, MPI_Request* requests, bool waits, int* code) {
  *code = MPI_SUCCESS;
  if (count_open(n, requests) == 0) return -1;
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), plan().random);
  do
    for (const int i : order) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      int done = 0;
      *code = PMPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
      if (done != 0 || *code != MPI_SUCCESS) return i;
    }
  while (waits);
  return -1;
}

// Waitsome and Testsome that report one request at a time.
int tell_one(int n, MPI_Request* requests, int* count, int* indices, bool waits) {
  if (count_open(n, requests) == 0) {
    *count = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  int code = MPI_SUCCESS;
  const int i = complete_one(n, requests, waits, &code);
  *count = i < 0 ? 0 : 1;
  if (i >= 0) indices[0] = i;
  return code;
}

int report() {
  const Plan& p = plan();
  if (p.counts && own_rank() == 1) {
    std::string text = "MPI calls: any " + std::to_string(p.all_calls);
    for (const auto& [kind, n] : p.calls) text += ", " + kind + " " + std::to_string(n);
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  if (!p.leaks || (p.requests == 0 && p.communicators == 0 && p.groups == 0 && p.ops == 0 && p.types == 0))
    return 0;
  std::fprintf(stderr,
               "[rank %d] leaks: %ld requests, %ld communicators, %ld groups, %ld ops, %ld datatypes\n",
               own_rank(), p.requests, p.communicators, p.groups, p.ops, p.types);
  return 98;
}

}  // namespace

extern "C" {

#define FAILABLE(name, parameters, arguments)      \
  int MPI_##name parameters {                      \
    if (fails("MPI_" #name)) return MPI_ERR_OTHER; \
    return PMPI_##name arguments;                  \
  }
FAILABLE(Allgather, (const void* in, int n, MPI_Datatype t, void* out, int m, MPI_Datatype u, MPI_Comm comm),
         (in, n, t, out, m, u, comm))
FAILABLE(Allgatherv,
         (const void* in, int n, MPI_Datatype t, void* out, const int* m, const int* at, MPI_Datatype u,
          MPI_Comm comm),
         (in, n, t, out, m, at, u, comm))
FAILABLE(Allreduce, (const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
         (in, out, n, t, op, comm))
FAILABLE(Barrier, (MPI_Comm comm), (comm))
FAILABLE(Bcast, (void* data, int n, MPI_Datatype t, int root, MPI_Comm comm), (data, n, t, root, comm))
FAILABLE(Reduce_scatter, (const void* in, void* out, const int* n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
         (in, out, n, t, op, comm))
FAILABLE(Init_thread, (int* argc, char*** argv, int required, int* provided),
         (argc, argv, required, provided))

#define MAKES_REQUEST(name, parameters, arguments) \
  int MPI_##name parameters {                      \
    *request = MPI_REQUEST_NULL;                   \
    if (fails("MPI_" #name)) return MPI_ERR_OTHER; \
    return opened(PMPI_##name arguments, request); \
  }
MAKES_REQUEST(Isend,
              (const void* data, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request* request),
              (data, n, t, to, tag, comm, request))
MAKES_REQUEST(Irecv,
              (void* data, int n, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Request* request),
              (data, n, t, from, tag, comm, request))
MAKES_REQUEST(Iallreduce,
              (const void* in, void* out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm,
               MPI_Request* request),
              (in, out, n, t, op, comm, request))
MAKES_REQUEST(Ibcast, (void* data, int n, MPI_Datatype t, int root, MPI_Comm comm, MPI_Request* request),
              (data, n, t, root, comm, request))

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (fails("MPI_Wait")) return MPI_ERR_OTHER;
  return completing(1, request, [&] { return PMPI_Wait(request, status); });
}
int MPI_Waitall(int n, MPI_Request* requests, MPI_Status* statuses) {
  if (fails("MPI_Waitall")) return MPI_ERR_OTHER;
  return completing(n, requests, [&] { return PMPI_Waitall(n, requests, statuses); });
}
int MPI_Testall(int n, MPI_Request* requests, int* done, MPI_Status* statuses) {
  *done = 0;
  if (fails("MPI_Testall")) return MPI_ERR_OTHER;
  if (plan().shuffles && plan().tosses()) return MPI_SUCCESS;
  return completing(n, requests, [&] { return PMPI_Testall(n, requests, done, statuses); });
}
int MPI_Waitany(int n, MPI_Request* requests, int* index, MPI_Status* status) {
  if (fails("MPI_Waitany")) return MPI_ERR_OTHER;
  return completing(n, requests, [&] {
    if (!plan().shuffles || count_open(n, requests) == 0) return PMPI_Waitany(n, requests, index, status);
    int code = MPI_SUCCESS;
    *index = complete_one(n, requests, true, &code);
    return code;
  });
}
int MPI_Waitsome(int n, MPI_Request* requests, int* count, int* indices, MPI_Status* statuses) {
  if (fails("MPI_Waitsome")) return MPI_ERR_OTHER;
  return completing(n, requests, [&] {
    return plan().shuffles ? tell_one(n, requests, count, indices, true)
                           : PMPI_Waitsome(n, requests, count, indices, statuses);
  });
}
int MPI_Testsome(int n, MPI_Request* requests, int* count, int* indices, MPI_Status* statuses) {
  if (fails("MPI_Testsome")) return MPI_ERR_OTHER;
  return completing(n, requests, [&] {
    return plan().shuffles ? tell_one(n, requests, count, indices, false)
                           : PMPI_Testsome(n, requests, count, indices, statuses);
  });
}
int MPI_Request_free(MPI_Request* request) {
  return completing(1, request, [&] { return PMPI_Request_free(request); });
}

#define MAKES_COMMUNICATOR(name, parameters, arguments) \
  int MPI_##name parameters {                           \
    *made_comm = MPI_COMM_NULL;                         \
    if (fails("MPI_" #name)) return MPI_ERR_OTHER;      \
    return made(PMPI_##name arguments, made_comm);      \
  }
MAKES_COMMUNICATOR(Comm_dup, (MPI_Comm comm, MPI_Comm* made_comm), (comm, made_comm))
MAKES_COMMUNICATOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made_comm),
                   (comm, color, key, made_comm))
MAKES_COMMUNICATOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made_comm),
                   (comm, type, key, info, made_comm))
MAKES_COMMUNICATOR(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made_comm),
                   (comm, group, tag, made_comm))
int MPI_Comm_free(MPI_Comm* comm) {
  const int code = PMPI_Comm_free(comm);
  if (code == MPI_SUCCESS) --plan().communicators;
  return code;
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  if (fails("MPI_Comm_group")) return MPI_ERR_OTHER;
  const int code = PMPI_Comm_group(comm, group);
  if (code == MPI_SUCCESS) ++plan().groups;
  return code;
}
int MPI_Group_incl(MPI_Group group, int n, const int* ranks, MPI_Group* part) {
  if (fails("MPI_Group_incl")) return MPI_ERR_OTHER;
  const int code = PMPI_Group_incl(group, n, ranks, part);
  if (code == MPI_SUCCESS) ++plan().groups;
  return code;
}
int MPI_Group_free(MPI_Group* group) {
  const int code = PMPI_Group_free(group);
  if (code == MPI_SUCCESS) --plan().groups;
  return code;
}

int MPI_Op_create(MPI_User_function* function, int commutes, MPI_Op* op) {
  if (fails("MPI_Op_create")) return MPI_ERR_OTHER;
  const int code = PMPI_Op_create(function, commutes, op);
  if (code == MPI_SUCCESS) ++plan().ops;
  return code;
}
int MPI_Op_free(MPI_Op* op) {
  const int code = PMPI_Op_free(op);
  if (code == MPI_SUCCESS) --plan().ops;
  return code;
}
int MPI_Type_commit(MPI_Datatype* type) {
  const int code = PMPI_Type_commit(type);
  if (code == MPI_SUCCESS) ++plan().types;
  return code;
}
int MPI_Type_free(MPI_Datatype* type) {
  const int code = PMPI_Type_free(type);
  if (code == MPI_SUCCESS) --plan().types;
  return code;
}

int MPI_Finalize() {
  const int status = report(), code = PMPI_Finalize();
  if (status != 0) _exit(status);
  return code;
}

}  // extern "C"
