// MPI up and down, once per process. Nothing here knows arrays.
//
// The library talks on duplicates of the job's (or the application's) communicator, with MPI_ERRORS_RETURN
// on them alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::comm {

struct StartOptions {
  std::string build;     // equal on all ranks, or the start is refused
  double timeout_s = 0;  // of the watchdog; 0: none
};

// Starts MPI, or adopts it when the application has started it (then it is the application that finalizes).
// Collective. ArgumentError: started already; the launcher counts more ranks than MPI does; the builds
// differ.
void start(int* argc, char*** argv, const StartOptions& options);
// The same on an application's own communicator (a pointer to an MPI_Comm), which is duplicated and not
// touched otherwise. ArgumentError: MPI is not running; MPI_COMM_NULL; an inter-communicator.
void attach(const void* mpi_comm, const StartOptions& options);
// Rank 0's bytes on all ranks, before the program's first call: recorded and counted nowhere.
void broadcast_at_start(void* data, int bytes);
// The same for a line of at most 159 characters of each rank, by rank.
std::vector<std::string> gather_at_start(const std::string& mine);
bool is_started();
// Ends the session with all that it holds (plans, communicators), and MPI if start() began it. Collective;
// call leave() first.
void finish();
// The same, but MPI goes on: a runtime that attaches next in this process ends it.
void finish_but_keep_mpi();

struct JobPlace {
  int rank = 0, size = 1;
  int host_rank = 0, host_size = 1;  // among the ranks of the same host
  std::vector<std::string> hosts;    // by rank
  int cores = 1;                     // of this host, as far as the job may use them
};
const JobPlace& place_in_job();

// The end of the program on this rank, with the status and the words it ends with ("" when it is done).
// Every rank calls it, and all return the same status. Different words are printed once each, with their
// ranks. When a rank fails and the others do not arrive within two seconds, or a rank is done while others
// go on, the job is ended from here: nobody is left waiting.
int leave(int status, const std::string& words);

[[noreturn]] void abort_job(int status);

// Name and version of the MPI library, one line.
std::string mpi_library();

}  // namespace tessera::comm
