// tessera run: mpirun with settings that suit a laptop, or the allocation of a SLURM job.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "commands.hpp"

namespace cli {

std::string mpi_program() {
  const char* chosen = std::getenv("TESSERA_MPIRUN");
  return chosen != nullptr ? chosen : "mpirun";
}

int run_program(const Order& order) {
  if (order.words.empty()) throw UsageError("run: which program? tessera run -n 8 ./program");
  const bool in_slurm = std::getenv("SLURM_JOB_ID") != nullptr;
  std::vector<std::string> words = {mpi_program()};
  if (order.ranks > 0) words.insert(words.end(), {"-n", std::to_string(order.ranks)});
  // Inside an allocation mpirun starts one daemon per node through srun, and the job's own limits hold.
  if (!in_slurm) words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
  words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  words.insert(words.end(), order.words.begin(), order.words.end());

  // One BLAS thread per rank unless the user says otherwise: the ranks share the cores.
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) setenv(name, "1", 0);
  if (geteuid() == 0) setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "tessera run: %s cannot be started: %s; install openmpi-bin, or name another with TESSERA_MPIRUN\n", argv[0],
               std::strerror(errno));
  return 1;
}

}  // namespace cli
