#include "comm/mpi/bridge/launch.hpp"

#include <cstdlib>

namespace tessera::comm::bridge {
namespace {

// A variable that a launcher sets in each process, and the variable that holds the number of processes.
struct Sign {
  const char* name;
  const char* count;
  Kind kind;
  bool likes_mpich;
};
constexpr Sign signs[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", Kind::openmpi, false},
    {"MPI_LOCALRANKID", "PMI_SIZE", Kind::mpich, true},  // Hydra: MPICH, Intel MPI, MVAPICH
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", Kind::mpich, true},
    {"PALS_RANKID", "", Kind::mpich, true},  // Cray
    {"ALPS_APP_PE", "", Kind::mpich, true},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", Kind::none, false},
    {"PMI_RANK", "PMI_SIZE", Kind::none, true},
    {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", Kind::none, false},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", Kind::none, false},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", Kind::none, true},
};

}  // namespace

Launch launch_of_process() {
  for (const Sign& sign : signs) {
    const char* value = std::getenv(sign.name);
    if (value == nullptr) continue;
    const char* count = std::getenv(sign.count);
    return {sign.kind, sign.likes_mpich, count != nullptr ? std::atoi(count) : 2,
            std::string(sign.name) + "=" + value};
  }
  return {};
}

}  // namespace tessera::comm::bridge
