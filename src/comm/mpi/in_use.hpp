// The MPI of this process, and the job that it belongs to, without a call of MPI.
#pragma once
#include <string>

namespace tessera::comm {

struct MpiInUse {
  std::string kind;  // openmpi, mpich, mpiabi or none of a library that loads its MPI; else linked
  std::string path;  // of the library, where it was loaded
};
MpiInUse mpi_in_use();

// Name and version of the MPI that a job started here would use, one line.
std::string mpi_of_jobs();

// This process's rank as its launcher has put it into the environment; -1 without a launcher.
int launched_rank();

}  // namespace tessera::comm
