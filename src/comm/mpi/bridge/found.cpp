#include "comm/mpi/bridge/found.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

namespace tessera::comm::bridge {
namespace {

namespace fs = std::filesystem;

// libmpi.so.40, libmpich.so.12, libmpi_cray.so.12, libmpi_abi.so.1; not libmpi_cxx or libmpi_mpifh.
bool is_mpi_file(const std::string& path) {
  const std::string name = fs::path(path).filename();
  for (const std::string_view stem :
       {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpi_cray.so", "libmpi_gnu"})
    if (name.starts_with(stem)) return true;
  return false;
}

Kind kind_of(void* handle, const std::string& path) {
  if (dlsym(handle, "MPI_Get_library_version") == nullptr) return Kind::none;
  if (dlsym(handle, "ompi_mpi_comm_world") != nullptr) return Kind::openmpi;
  const std::string name = fs::path(path).filename();
  return name.starts_with("libmpi_abi") ? Kind::standard : Kind::mpich;
}

std::string path_of(void* handle, const std::string& otherwise) {
  const void* symbol = dlsym(handle, "MPI_Get_library_version");
  Dl_info info;
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : otherwise;
}

// Loaded into a separate namespace (RTLD_LOCAL), as Python modules are, so that two libraries with the same
// names do not mix.
Library load(const std::string& path, int mode = 0) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | mode);
  if (handle == nullptr) return {};
  const auto kind = kind_of(handle, path);
  return kind == Kind::none ? Library{} : Library{kind, path_of(handle, path), handle};
}

int note_object(dl_phdr_info* info, std::size_t, void* paths) {
  const std::string path = info->dlpi_name;
  if (is_mpi_file(path)) static_cast<std::vector<std::string>*>(paths)->push_back(path);
  return 0;
}

// MPI linked into the program itself as a static library.
Library in_program() {
  if (dlsym(RTLD_DEFAULT, "MPI_Get_library_version") == nullptr) return {};
  void* program = dlopen(nullptr, RTLD_LAZY);
  return {kind_of(program, ""), path_of(program, "the program"), program};
}

// The installation prefix of the launcher among this process's parents, "" if none is found.
std::string prefix_of_launcher() {
  int process = getppid();
  for (int steps = 0; steps < 4 && process > 1; ++steps) {
    const std::string proc = "/proc/" + std::to_string(process);
    std::error_code none;
    const fs::path program = fs::read_symlink(proc + "/exe", none);
    const std::string name = program.filename();
    for (const std::string_view known :
         {"mpirun", "mpiexec", "orterun", "orted", "prte", "hydra_", "mpiexec.hydra"})
      if (name.starts_with(known)) return program.parent_path().parent_path();
    std::ifstream stat(proc + "/stat");
    std::string text;
    std::getline(stat, text);
    std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string state;
    process = 0;
    rest >> state >> process;
  }
  return "";
}

std::string prefix_of_mpirun() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code none;
    const auto mpirun = fs::path(folder) / "mpirun";
    if (fs::exists(mpirun, none)) return fs::canonical(mpirun, none).parent_path().parent_path();
  }
  return "";
}

// The folders to search under a prefix; "" stands for the loader's own search path.
std::vector<std::string> folders_of(const std::string& prefix) {
  if (prefix.empty()) return {};
  if (prefix == "/usr" || prefix == "/") return {""};
  return {prefix + "/lib/", prefix + "/lib64/"};
}

std::vector<std::string> folders_to_search() {
  std::vector<std::string> folders = folders_of(prefix_of_launcher());
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&folders_to_search), &self) != 0) {
    std::error_code none;
    auto folder = fs::canonical(self.dli_fname, none).parent_path();
    for (; folder.has_relative_path(); folder = folder.parent_path())
      if (folder.filename() == "lib" || folder.filename() == "lib64") folders.push_back(folder / "");
  }
  for (auto& folder : folders_of(prefix_of_mpirun())) folders.push_back(folder);
  folders.emplace_back("");
  return folders;
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr std::array names = {"none", "Open MPI", "MPICH", "an MPI of the standard ABI"};
  return names[static_cast<std::size_t>(kind)];
}

const char* word_of(Kind kind) {
  constexpr std::array words = {"none", "openmpi", "mpich", "mpiabi"};
  return words[static_cast<std::size_t>(kind)];
}

std::vector<Library> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(note_object, &paths);
  std::vector<Library> loaded;
  for (const auto& path : paths)
    if (auto library = load(path, RTLD_NOLOAD); library.kind != Kind::none)
      loaded.push_back(std::move(library));
  if (!loaded.empty()) return loaded;
  if (auto library = in_program(); library.kind != Kind::none) loaded.push_back(std::move(library));
  return loaded;
}

Library find_library(const std::vector<Kind>& kinds) {
  const std::map<Kind, std::vector<std::string>> names = {
      {Kind::none, {}},
      {Kind::openmpi, {"libmpi.so.40"}},
      {Kind::mpich, {"libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12"}},
      {Kind::standard, {"libmpi_abi.so.1", "libmpi_abi.so.0"}}};
  for (const auto& folder : folders_to_search())
    for (const auto kind : kinds)
      for (const auto& name : names.at(kind)) {
        std::error_code none;
        if (!folder.empty() && !fs::exists(folder + name, none)) continue;
        if (auto library = load(folder + name); library.kind == kind) return library;
      }
  return {};
}

Library open_library(const std::string& path) { return load(path); }

void keep(const Library& library) { dlopen(library.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); }
void drop(const Library& library) { dlclose(library.handle); }

}  // namespace tessera::comm::bridge
