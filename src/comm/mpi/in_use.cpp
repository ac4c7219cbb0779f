#include "comm/mpi/in_use.hpp"

#include <cstdlib>

#include "comm/mpi/environment.hpp"
#ifdef TESSERA_MPI_BRIDGE
#include "comm/mpi/bridge/found.hpp"
#include "comm/mpi/bridge/table.hpp"
#endif

namespace tessera::comm {

#ifdef TESSERA_MPI_BRIDGE

MpiInUse mpi_in_use() {
  if (bridge::table == &bridge::alone) return {"none", ""};
  const auto loaded = bridge::loaded_libraries();
  for (const auto& library : loaded)
    if (std::string(bridge::table->kind) == bridge::word_of(library.kind))
      return {bridge::table->kind, library.path};
  return {bridge::table->kind, ""};
}

std::string mpi_of_jobs() {
  const std::string own = mpi_library();
  if (bridge::table != &bridge::alone) return own;
  const auto library =
      bridge::find_library({bridge::Kind::openmpi, bridge::Kind::mpich, bridge::Kind::standard});
  if (library.kind == bridge::Kind::none) return "none";
  bridge::drop(library);
  return std::string(name_of(library.kind)) + " (" + library.path + ")";
}

#else

MpiInUse mpi_in_use() { return {"linked", ""}; }
std::string mpi_of_jobs() { return mpi_library(); }

#endif

int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* text = std::getenv(name); text != nullptr) return std::atoi(text);
  return -1;
}

}  // namespace tessera::comm
