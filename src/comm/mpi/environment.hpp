// Starts and ends MPI, once per process. Independent of arrays.
//
// The library communicates on duplicates of the job's (or the application's) communicator; only these have
// MPI_ERRORS_RETURN set.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::comm {

struct StartOptions {
  std::string build;     // equal on all ranks, or the start is refused
  double timeout_s = 0;  // timeout of the watchdog; 0: none
};

// Starts MPI, or adopts it when the application has started it (then the application finalizes it).
// Collective. ArgumentError: the runtime is started already; the launcher counts more ranks than MPI does;
// the builds differ.
void start(int* argc, char*** argv, const StartOptions& options);
// The same on an application's own communicator (a pointer to an MPI_Comm), which is duplicated and not
// touched otherwise. ArgumentError: MPI is not running; MPI_COMM_NULL; an inter-communicator.
void attach(const void* mpi_comm, const StartOptions& options);
// Broadcasts rank 0's bytes before the program's first call; neither recorded nor counted.
void broadcast_at_start(void* data, int bytes);
// Gathers one line of at most 159 characters from each rank, under the same conditions; by rank.
std::vector<std::string> gather_at_start(const std::string& mine);
bool is_started();
// Ends the session with all that it holds (plans, communicators), and MPI if start() started it. Collective;
// call leave() first.
void finish();
// The same without finalizing MPI: the next runtime that attaches in this process finalizes it.
void finish_but_keep_mpi();

struct JobPosition {
  int rank = 0, size = 1;
  int host_rank = 0, host_size = 1;  // among the ranks of the same host
  std::vector<std::string> hosts;    // by rank
  int cores = 1;                     // cores of this host that the job may use
};
const JobPosition& place_in_job();

// Ends the program on this rank with a status and last words ("" on success). Every rank calls it, and all
// return the same status. Distinct words are printed once each, with their ranks. When a rank fails and the
// others do not arrive within two seconds, or a rank ends while others continue, the job is ended from here:
// no rank is left waiting.
int leave(int status, const std::string& words);

[[noreturn]] void abort_job(int status);

// Name and version of the MPI library, one line.
std::string mpi_library();

}  // namespace tessera::comm
