/// @file
/// Start and end of the runtime. One MPI rank is one device; every rank runs the same program (SPMD).
///
/// Threads: a process calls tessera from one thread, the one that started the runtime (without a runtime: the
/// one that called first). A call from another thread is a ThreadError there, before any state changes. Array
/// handles may be copied and released on any thread.
#pragma once
#include <functional>

#include <tessera/device.hpp>

namespace tessera {

/// Options of a runtime. Default fields use the environment's TESSERA_* settings (`tessera env` lists them).
struct RuntimeOptions {
  int threads = 0;        ///< threads of one rank's kernels; 0: TESSERA_THREADS
  double timeout_s = -1;  ///< limit of a wait for other ranks; below 0: TESSERA_TIMEOUT
};

/// main() in one line: starts MPI, runs body, ends MPI; returns main's status. Collective over all ranks.
/// Without mpirun the program has one device.
/// An exception that leaves body ends the whole job: it is printed once with its rank, and the status is 70
/// (71 out of memory, 74 files, 76 the ranks tried to do different things, 2 the program cannot be started
/// like this). No rank is left waiting for one that failed or returned early.
int run(int argc, char** argv, std::function<void()> body);

/// The same as a scope. If the application has started MPI, it is used and left running. Errors
/// (ArgumentError): a runtime is running already; MPI was finalized; launcher and MPI library do not match;
/// the ranks run different builds of tessera.
class Runtime {
 public:
  /// Starts MPI unless it is running, and removes MPI's arguments from argc and argv. Collective over all
  /// ranks.
  Runtime(int& argc, char**& argv, RuntimeOptions options = {});
  /// Collective. If an exception is passing on this rank alone, the job is aborted, since the others would
  /// wait for ever.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// A runtime inside an application that already uses MPI, on any intra-communicator, which is duplicated.
  /// Collective over the communicator. Needs <tessera/mpi.hpp>.
  template <class MpiComm> static Runtime attach(MpiComm comm, RuntimeOptions options = {});

 private:
  struct Attach {};
  Runtime(Attach, const void* mpi_comm, RuntimeOptions options);
  int exceptions_before_;
};

int process_index();     ///< this process's rank. Not collective
int process_count();     ///< number of processes of the job. Not collective
bool is_main_process();  ///< whether this is rank 0. Not collective

}  // namespace tessera
