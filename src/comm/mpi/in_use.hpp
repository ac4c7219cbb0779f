// The MPI of this process and its job, found without calling MPI.
#pragma once
#include <string>

namespace tessera::comm {

struct MpiInUse {
  std::string kind;  // openmpi, mpich, mpiabi or none for a library that loads its MPI; else linked
  std::string path;  // path of the library, if it was loaded
};
MpiInUse mpi_in_use();

// Name and version of the MPI that a job started here would use, one line.
std::string mpi_of_jobs();

// This process's rank as the launcher's environment variables give it; -1 without a launcher.
int launched_rank();

}  // namespace tessera::comm
