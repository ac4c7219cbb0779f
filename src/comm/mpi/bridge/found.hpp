// MPI libraries: those that the process has loaded, and those that can be.
#pragma once
#include <string>
#include <vector>

namespace tessera::comm::bridge {

enum class Kind { none, openmpi, mpich, standard };
const char* name_of(Kind);  // "Open MPI", "MPICH"
const char* word_of(Kind);  // "openmpi", "mpich", as TESSERA_MPI has it

struct Library {
  Kind kind = Kind::none;
  std::string path;
  void* handle = nullptr;
};

// Linked by the program, or loaded by one of its modules.
std::vector<Library> loaded_libraries();

// The first of this kind: beside the launcher that started this process, in the folders above this library
// (an environment's), where mpirun is, where the loader looks. Kind::none if there is none.
Library find_library(Kind);
// By its path. Kind::none if it is not there or has no MPI.
Library open_library(const std::string& path);

// What was found stays until the process ends (MPI's threads and exit handlers run until then), or goes
// again.
void keep(const Library&);
void drop(const Library&);

}  // namespace tessera::comm::bridge
