#include "raw_mpi.hpp"

#include <mpi.h>

#include <chrono>
#include <thread>

#include "bench.hpp"

namespace bench::raw {

void all_reduce(const float* in, float* out, int n) {
  MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
void all_reduce(const std::uint64_t* in, std::uint64_t* out, int n) {
  MPI_Allreduce(in, out, n, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
}
void all_gather(const float* in, int block, float* out) {
  MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
}
void reduce_scatter(const float* in, float* out, int block) {
  MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
void all_to_all(const float* in, int block, float* out) {
  MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
}
void all_to_all(const double* in, const std::vector<int>& counts, const std::vector<int>& offsets,
                double* out) {
  MPI_Alltoallv(in, counts.data(), offsets.data(), MPI_DOUBLE, out, counts.data(), offsets.data(), MPI_DOUBLE,
                MPI_COMM_WORLD);
}
void shift(const float* in, float* out, int n) {
  const int next = (rank() + 1) % ranks(), before = (rank() + ranks() - 1) % ranks();
  MPI_Sendrecv(in, n, MPI_FLOAT, next, 0, out, n, MPI_FLOAT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void broadcast(float* x, int n, int root) { MPI_Bcast(x, n, MPI_FLOAT, root, MPI_COMM_WORLD); }
void broadcast(double* x, int n, int root) { MPI_Bcast(x, n, MPI_DOUBLE, root, MPI_COMM_WORLD); }
void broadcast(int* x, int n, int root) { MPI_Bcast(x, n, MPI_INT, root, MPI_COMM_WORLD); }

void rows_to_columns(const double* from, int n, int b, double* to) {
  const int p = ranks();
  std::vector<MPI_Datatype> send(p), receive(p);
  const std::vector<int> ones(p, 1), zeros(p, 0);
  for (int r = 0; r < p; ++r) {
    const int whole_from[2] = {b, n}, whole_to[2] = {n, b}, part[2] = {b, b}, at_from[2] = {0, r * b},
              at_to[2] = {r * b, 0};
    MPI_Type_create_subarray(2, whole_from, part, at_from, MPI_ORDER_C, MPI_DOUBLE, &send[r]);
    MPI_Type_create_subarray(2, whole_to, part, at_to, MPI_ORDER_C, MPI_DOUBLE, &receive[r]);
    MPI_Type_commit(&send[r]), MPI_Type_commit(&receive[r]);
  }
  MPI_Alltoallw(from, ones.data(), zeros.data(), send.data(), to, ones.data(), zeros.data(), receive.data(),
                MPI_COMM_WORLD);
  for (int r = 0; r < p; ++r) MPI_Type_free(&send[r]), MPI_Type_free(&receive[r]);
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
void sleeping_barrier() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}
double largest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}
int rank_of_least(double mine) {
  struct {
    double value;
    int rank;
  } own{mine, rank()}, least{};
  MPI_Allreduce(&own, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  return least.rank;
}
int fortran_communicator() { return MPI_Comm_c2f(MPI_COMM_WORLD); }

}  // namespace bench::raw
