// tessera sbatch: writes a job for SLURM, and submits it if requested.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.hpp"
#include "batch_script.hpp"
#include "launcher.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;

void check(const BatchOrder& order) {
  if (order.words.empty())
    throw UsageError("sbatch: which program? tessera sbatch -N 4 -n 128 --time 1:00:00 ./program words");
  if (order.ranks == 0)
    throw UsageError("sbatch: how many ranks? -n 128; all of them together, on whatever number of nodes");
  if (order.ranks < order.nodes)
    throw UsageError("sbatch: " + tessera::format_count(order.ranks, "rank") + " cannot fill " +
                     tessera::format_count(order.nodes, "node") + "; take -N " + std::to_string(order.ranks) +
                     " at most");
  require_program("sbatch", order.words.front(), "; the job would find that out when it starts");
}

// Warns about 1:00, which looks like an hour.
void point_out_minutes(const std::string& time) {
  if (time.find('-') != std::string::npos || std::count(time.begin(), time.end(), ':') != 1) return;
  std::fprintf(stderr,
               "tessera: --time %s is minutes:seconds, as SLURM reads it: %s; hours are written %s:00\n",
               time.c_str(), limit_words(seconds_of_limit(time)).c_str(), time.c_str());
}

std::string own_path() {
  std::error_code none;
  const auto path = fs::read_symlink("/proc/self/exe", none);
  return none ? "tessera" : path.string();
}

// srun if one of its --mpi types fits our MPI; else mpirun, which tessera run starts with settings for the
// node.
std::vector<std::string> launcher_of_job(const BatchOrder& order) {
  const auto type = !order.mpi.empty() ? order.mpi : order.launcher == "mpirun" ? "" : mpi_type_here();
  if (!type.empty()) return srun_words(type, order.ranks, order.cpus_per_task);
  if (order.launcher == "srun")
    throw UsageError(
        "sbatch --launcher srun: srun is not here, or knows no --mpi that suits this MPI; say which with "
        "--mpi "
        "pmix, or leave the option out");
  return {own_path(), "run", "-n", std::to_string(order.ranks)};
}

std::vector<std::pair<std::string, std::string>> settings_of_job(const BatchOrder& order) {
  std::vector<std::pair<std::string, std::string>> settings;
  bool has_blas = false, has_omp = false, has_threads = false;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    const bool is_threads = name == "OPENBLAS_NUM_THREADS" || name == "OMP_NUM_THREADS";
    if (!is_threads && !name.starts_with("TESSERA_") && !name.starts_with("OMPI_MCA_")) continue;
    settings.emplace_back(name, text.substr(std::min(text.size(), name.size() + 1)));
    has_blas |= name == "OPENBLAS_NUM_THREADS", has_omp |= name == "OMP_NUM_THREADS",
        has_threads |= name == "TESSERA_THREADS";
  }
  const auto cpus = std::to_string(order.cpus_per_task);
  if (!has_blas) settings.emplace_back("OPENBLAS_NUM_THREADS", cpus);
  if (!has_omp) settings.emplace_back("OMP_NUM_THREADS", cpus);
  if (!has_threads && order.cpus_per_task > 1) settings.emplace_back("TESSERA_THREADS", cpus);
  std::sort(settings.begin(), settings.end());
  return settings;
}

bool is_ours(const std::string& path) {
  std::ifstream file(path);
  std::string first, second;
  return std::getline(file, first) && std::getline(file, second) && second == "# Written by tessera sbatch";
}

void write_script(const std::string& path, const std::string& text, bool replace) {
  if (fs::exists(path) && !replace && !is_ours(path))
    throw UsageError(
        "sbatch: " + tessera::in_quotes(path) +
        " exists, and was not written by tessera sbatch; name another with -o, or add --replace");
  std::ofstream file(path);
  file << text;
  if (!file.flush())
    throw tessera::IoError("sbatch: " + tessera::in_quotes(path) + " cannot be written: " +
                           std::strerror(errno) + "; check the folder, or name another with -o");
}

int submit(const std::string& path) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execlp("sbatch", "sbatch", path.c_str(), nullptr);
    std::fprintf(stderr, "tessera: sbatch cannot be started: %s; submit %s from a machine that has SLURM\n",
                 std::strerror(errno), tessera::in_quotes(path).c_str());
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

}  // namespace

int write_batch_script(const BatchOrder& asked) {
  BatchOrder order = asked;
  if (is_module(order.words) || (!order.words.empty() && is_script(order.words.front())))
    order.words.insert(order.words.begin(), python_of_jobs());
  check(order);
  const auto limit = order.time.empty() ? 0 : seconds_of_limit(order.time);
  if (order.warn_s < 0) order.warn_s = limit > 0 ? warning_of(limit) : 120;
  if (limit > 0 && order.warn_s >= limit)
    throw UsageError("sbatch: --warn " + std::to_string(order.warn_s) +
                     " is no less than the whole time of " + limit_words(limit));
  if (!order.time.empty()) point_out_minutes(order.time);
  const auto text =
      batch_script(order, {fs::current_path().string(), launcher_of_job(order), settings_of_job(order)});
  if (order.script == "-" && !order.submit) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  const auto path =
      order.script.empty() || order.script == "-" ? name_of_program(order.words) + ".sbatch" : order.script;
  write_script(path, text, order.replace);
  if (order.submit) return submit(path);
  std::printf(
      "%s: %s on %s; submit it with: sbatch %s\n", path.c_str(),
      tessera::format_count(order.ranks, "rank").c_str(),
      order.nodes > 0 ? tessera::format_count(order.nodes, "node").c_str() : "as many nodes as SLURM takes",
      shell_word(path).c_str());
  return 0;
}

}  // namespace cli
