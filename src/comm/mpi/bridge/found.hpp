// MPI libraries: those that the process has loaded, and those that it could load.
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

// Libraries linked by the program, or loaded by one of its modules.
std::vector<Library> loaded_libraries();

// The first library of these kinds in the order of folders, then of kinds: searched beside the launcher that
// started this process, in the folders above this library (an environment's), beside mpirun, and by the
// loader. Kind::none if there is none.
Library find_library(const std::vector<Kind>&);
// Opens a library by its path. Kind::none if the file is missing or has no MPI.
Library open_library(const std::string& path);

// keep() leaves a found library loaded until the process ends (MPI's threads and exit handlers run until
// then); drop() unloads it.
void keep(const Library&);
void drop(const Library&);

}  // namespace tessera::comm::bridge
