// The MPI library's own calls over all ranks: the peers of tessera's collectives, and what the benchmark
// itself needs, independent of what it measures. The one door of the program to <mpi.h>.
#pragma once
#include <cstdint>
#include <vector>

namespace bench::raw {

// `block`, `n`: elements of each rank's block and of the whole buffer.
void all_reduce(const float* in, float* out, int n);                  // sums
void all_reduce(const std::uint64_t* in, std::uint64_t* out, int n);  // maxima
void all_gather(const float* in, int block, float* out);
void reduce_scatter(const float* in, float* out, int block);
void all_to_all(const float* in, int block, float* out);
void all_to_all(const double* in, const std::vector<int>& counts, const std::vector<int>& offsets,
                double* out);                    // MPI_Alltoallv, the same counts on both sides
void shift(const float* in, float* out, int n);  // to the next rank, from the one before
void broadcast(float* x, int n, int root);
void broadcast(double* x, int n, int root);
void broadcast(int* x, int n, int root);
// Rows [r b, (r + 1) b) of an n x n matrix on rank r become its columns [r b, (r + 1) b): MPI_Alltoallw on
// subarrays.
void rows_to_columns(const double* from, int n, int b, double* to);

void barrier();
// Sleeps between looks: waiting inside MPI would use the core of a rank that works.
void sleeping_barrier();
double largest(double mine);  // of all ranks
int rank_of_least(double mine);
int fortran_communicator();  // for BLACS

}  // namespace bench::raw
