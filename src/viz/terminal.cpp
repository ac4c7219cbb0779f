#include "viz/terminal.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tessera::viz {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

bool is_started_by_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (is_set(name)) return true;
  }
  return false;
}

pid_t parent_of(pid_t process) {
  std::string path = "/proc/" + std::to_string(process) + "/stat";
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return 0;
  char text[512];
  std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = 0;
  const char* after_name = std::strrchr(text, ')');  // the name may contain anything
  int parent = 0;
  if (!after_name || std::sscanf(after_name + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

bool is_terminal_device(const struct stat& file) {
  constexpr unsigned consoles = 4, pty_first = 136, pty_last = 143;  // Linux device numbers
  unsigned major_number = major(file.st_rdev);
  return S_ISCHR(file.st_mode) &&
         (major_number == consoles || (major_number >= pty_first && major_number <= pty_last));
}

}  // namespace

// mpirun gives each rank a pseudo-terminal and forwards its output to a file as well as to a screen. So
// isatty is always true, and the launcher's own standard output decides: that of the first ancestor with a
// different one.
bool stdout_ends_at_terminal() {
  if (!isatty(STDOUT_FILENO)) return false;
  if (!is_started_by_launcher()) return true;
  struct stat own, theirs;
  if (fstat(STDOUT_FILENO, &own) != 0) return false;
  for (pid_t process = getppid(); process > 0; process = parent_of(process)) {
    if (stat(("/proc/" + std::to_string(process) + "/fd/1").c_str(), &theirs) != 0) return false;
    if (S_ISCHR(theirs.st_mode) && theirs.st_rdev == own.st_rdev) continue;
    return is_terminal_device(theirs);
  }
  return true;
}

ColourDepth stdout_colour_depth() {
  const char* term = std::getenv("TERM");
  if (is_set("NO_COLOR") || !term || !*term || std::strcmp(term, "dumb") == 0 || !stdout_ends_at_terminal())
    return ColourDepth::none;
  const char* colour_term = std::getenv("COLORTERM");
  bool has_truecolour =
      (colour_term && (!std::strcmp(colour_term, "truecolor") || !std::strcmp(colour_term, "24bit"))) ||
      std::strstr(term, "direct");
  return has_truecolour ? ColourDepth::truecolour : ColourDepth::indexed256;
}

}  // namespace tessera::viz
