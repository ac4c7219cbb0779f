#include "launcher.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "comm/mpi/in_use.hpp"
#include "commands.hpp"

namespace cli {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::string mpi_program() {
  const auto chosen = variable("TESSERA_MPIRUN");
  return chosen.empty() ? "mpirun" : chosen;
}

// Variables that select the launcher, and are meaningless to ranks.
bool is_of_launcher(const std::string& name) { return name == "TESSERA_MPIRUN" || name == "TESSERA_PYTHON"; }

// Settings to export to ranks on other hosts, since mpirun passes on only its own.
std::vector<std::string> exported(const Launcher& launcher) {
  std::set<std::string> names;
  for (const auto& [name, value] : launcher.settings) names.insert(name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    const bool of_all =
        name == "OPENBLAS_NUM_THREADS" || name == "OMP_NUM_THREADS" || name == "PYTHONHASHSEED";
    if (of_all || (name.starts_with("TESSERA_") && !is_of_launcher(name))) names.insert(name);
  }
  std::vector<std::string> words;
  for (const auto& name : names) words.insert(words.end(), {"-x", name});
  return words;
}

// Threads of the library's kernels and its BLAS: one per rank unless the job gives a rank more cores.
void add_threads(Launcher& launcher, int cpus_per_task) {
  std::vector<std::string> names{"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
  if (cpus_per_task > 1) names.emplace_back("TESSERA_THREADS");
  for (const auto& name : names)
    if (std::getenv(name.c_str()) == nullptr)
      launcher.settings.emplace_back(name, std::to_string(cpus_per_task));
}

int cpus_per_task() { return std::max(1, std::atoi(variable("SLURM_CPUS_PER_TASK").c_str())); }

// The user's own settings of Open MPI take precedence.
std::vector<std::string> mapping_of_job() {
  if (std::getenv("OMPI_MCA_hwloc_base_binding_policy") != nullptr ||
      std::getenv("OMPI_MCA_rmaps_base_mapping_policy") != nullptr)
    return {};
  return mapping(most_tasks_per_node(variable("SLURM_TASKS_PER_NODE")), cpus_per_task(), cpus_of_this_node());
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  pclose(pipe);
  return text;
}

Launcher mpirun_here(int ranks) {
  Launcher launcher{{}, {mpi_program()}};
  add_threads(launcher, in_slurm() ? cpus_per_task() : 1);
  // Ranks that go through a set of names have to do so in one order, on other hosts too.
  if (std::getenv("PYTHONHASHSEED") == nullptr) launcher.settings.emplace_back("PYTHONHASHSEED", "0");
  auto& words = launcher.words;
  if (is_hydra(mpi_program())) {  // Hydra forwards every environment variable and binds no process
    if (ranks > 0) words.insert(words.end(), {"-n", std::to_string(ranks)});
    return launcher;
  }
  for (auto& word : exported(launcher)) words.push_back(std::move(word));
  if (ranks > 0) words.insert(words.end(), {"-n", std::to_string(ranks)});
  // Inside an allocation mpirun starts one daemon per node through srun, the job's own limits apply, and a
  // waiting rank keeps its core.
  const auto here = in_slurm() ? mapping_of_job()
                               : std::vector<std::string>{"--oversubscribe", "--bind-to",           "none",
                                                          "--mca",           "mpi_yield_when_idle", "1"};
  words.insert(words.end(), here.begin(), here.end());
  return launcher;
}

Launcher srun_here(int ranks) {
  const auto type = mpi_type_here();
  if (type.empty())
    throw UsageError(
        "srun knows no --mpi that suits this MPI (srun --mpi=list says what there is): put its mpirun on the "
        "PATH, or name it with TESSERA_MPIRUN");
  Launcher launcher{{}, srun_words(type, ranks, cpus_per_task())};
  add_threads(launcher, cpus_per_task());
  return launcher;
}

// The number of members of a list: "0-1,4" has three.
int members(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0;
    const int found = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    count += found == 2 ? last - first + 1 : found == 1 ? 1 : 0;
  }
  return count;
}

}  // namespace

bool is_module(const std::vector<std::string>& program) {
  return !program.empty() && program.front() == "-m";
}

std::string python_of_jobs() {
  const auto python = variable("TESSERA_PYTHON");
  return python.empty() ? "python3" : python;
}

void add_program(Launcher& launcher, const std::vector<std::string>& program) {
  if (is_module(program) || is_script(program.front())) launcher.words.push_back(python_of_jobs());
  launcher.words.insert(launcher.words.end(), program.begin(), program.end());
}

bool in_slurm() { return std::getenv("SLURM_JOB_ID") != nullptr; }

Cpus cpus_of_this_node() {
  Cpus node;
  node.threads = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  std::ifstream siblings("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
  std::string list;
  std::getline(siblings, list);
  node.cores = std::max(1, node.threads / std::max(1, members(list)));
  return node;
}

int most_tasks_per_node(const std::string& text) {
  int most = 0;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) most = std::max(most, std::atoi(part.c_str()));
  return most;
}

std::vector<std::string> mapping(int tasks, int cpus_per_task, const Cpus& node) {
  const auto wanted = static_cast<long long>(std::max(1, tasks)) * cpus_per_task;
  if (wanted > node.threads) return {"--bind-to", "none"};
  std::vector<std::string> words;
  if (wanted > node.cores) words.emplace_back("--use-hwthread-cpus");
  words.insert(words.end(), {"--map-by", "slot:PE=" + std::to_string(cpus_per_task), "--bind-to",
                             wanted > node.cores ? "hwthread" : "core"});
  return words;
}

std::string mpi_type(const std::string& listed, const std::string& mpi_library) {
  std::set<std::string> types;
  std::string word;
  for (const char c : listed + "\n") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    types.insert(word);
    word.clear();
  }
  const bool is_open_mpi = mpi_library.find("Open MPI") != std::string::npos;
  const auto likes = is_open_mpi ? std::vector<std::string>{"pmix", "pmix_v5", "pmix_v4", "pmix_v3"}
                                 : std::vector<std::string>{"pmi2", "pmix", "cray_shasta"};
  for (const auto& type : likes)
    if (types.contains(type)) return type;
  return "";
}

bool is_hydra(const std::string& mpirun) {
  if (!is_on_path(mpirun)) return false;
  const auto text = output_of(shell_word(mpirun) + " --version 2>/dev/null");
  return text.find("HYDRA") != std::string::npos || text.find("Intel") != std::string::npos;
}

std::vector<std::string> quiet_words(const std::string& mpirun) {
  if (!is_on_path(mpirun)) return {};
  const std::string name = "(Open MPI) ", text = output_of(shell_word(mpirun) + " --version 2>/dev/null");
  const auto at = text.find(name);
  const bool has_option = at != std::string::npos && std::atoi(text.c_str() + at + name.size()) < 5;
  return has_option ? std::vector<std::string>{"--quiet"} : std::vector<std::string>{};
}

std::string mpi_type_here() {
  if (!is_on_path("srun")) return "";
  return mpi_type(output_of("srun --mpi=list 2>&1"), tessera::comm::mpi_of_jobs());
}

bool is_program(const std::string& path) {
  std::error_code none;
  return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, none);
}

bool is_script(const std::string& program) {
  return program.ends_with(".py") && !is_program(program) && access(program.c_str(), R_OK) == 0;
}

std::string path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string path = folder + "/" + program; is_program(path)) return path;
  return "";
}
bool is_on_path(const std::string& program) { return !path_of(program).empty(); }

void require_program(const char* command, const std::string& program, const char* when) {
  if (is_on_path(program) || is_script(program)) return;
  if (program.starts_with('-'))
    throw UsageError(std::string(command) + " has no option " + tessera::in_quotes(program));
  std::error_code none;
  const bool is_path = program.find('/') != std::string::npos || program.ends_with(".py") ||
                       std::filesystem::exists(program, none);
  const char* what = !is_path                                       ? " is no program on the PATH"
                     : std::filesystem::is_directory(program, none) ? " is a folder"
                     : std::filesystem::exists(program, none)       ? " is no program that can be run"
                                                                    : " does not exist";
  throw UsageError(std::string(command) + ": " + tessera::in_quotes(program) + what + when);
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string("_-+=./:,@%").find(static_cast<char>(c)) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> srun_words(const std::string& type, int ranks, int cpus_per_task) {
  std::vector<std::string> words{"srun", "--mpi=" + type};
  if (ranks > 0) words.push_back("--ntasks=" + std::to_string(ranks));
  // Since SLURM 22.05 srun does not inherit --cpus-per-task from the job.
  if (cpus_per_task > 1) words.push_back("--cpus-per-task=" + std::to_string(cpus_per_task));
  words.insert(words.end(), {"--cpu-bind=cores", "--kill-on-bad-exit=1", "--export=ALL"});
  return words;
}

Launcher launcher_here(int ranks, const std::string& chosen) {
  if (chosen == "srun" && !is_on_path("srun"))
    throw UsageError("--launcher srun: there is no srun on the PATH; leave the option out to use mpirun");
  const bool has_mpirun = is_on_path(mpi_program());
  if (chosen == "srun" || (chosen.empty() && !has_mpirun && in_slurm() && is_on_path("srun")))
    return srun_here(ranks);
  return mpirun_here(ranks);
}

std::string shell_line(const Launcher& launcher) {
  std::string line;
  for (const auto& [name, value] : launcher.settings) line += name + "=" + shell_word(value) + " ";
  for (const auto& word : launcher.words) line += shell_word(word) + " ";
  line.pop_back();
  return line;
}

}  // namespace cli
