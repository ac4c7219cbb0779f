// tessera run: mpirun with settings that suit a laptop, or the allocation of a SLURM job. tessera matmul -n
// 4: the same words as 4 ranks.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "commands.hpp"

namespace cli {
namespace {

std::string mpi_program() {
  const char* chosen = std::getenv("TESSERA_MPIRUN");
  return chosen != nullptr ? chosen : "mpirun";
}

bool in_slurm() { return std::getenv("SLURM_JOB_ID") != nullptr; }

// What ranks on other hosts would not see: mpirun takes along its own settings alone.
std::vector<std::string> exported() {
  // One BLAS thread per rank unless the user says otherwise: the ranks share the cores.
  for (const char* name : {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) setenv(name, "1", 0);
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    const bool threads = name == "OPENBLAS_NUM_THREADS" || name == "OMP_NUM_THREADS";
    if (threads || (name.starts_with("TESSERA_") && name != "TESSERA_MPIRUN"))
      words.insert(words.end(), {"-x", name});
  }
  return words;
}

// mpirun and its options before the program.
std::vector<std::string> launcher(const Order& order) {
  std::vector<std::string> words = {mpi_program()};
  for (auto& word : exported()) words.push_back(std::move(word));
  if (order.ranks > 0) words.insert(words.end(), {"-n", std::to_string(order.ranks)});
  // Inside an allocation mpirun starts one daemon per node through srun, and the job's own limits hold.
  if (!in_slurm()) words.insert(words.end(), {"--oversubscribe", "--bind-to", "none"});
  words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  return words;
}

// Returns only when the launcher cannot be started.
int become(std::vector<std::string> words) {
  if (geteuid() == 0)
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(
      stderr, "tessera: %s cannot be started: %s; install openmpi-bin, or name another with TESSERA_MPIRUN\n",
      argv[0], std::strerror(errno));
  return 1;
}

pid_t launched = 0;
void pass_on(int signal) {
  if (launched > 0) kill(launched, signal);
}

}  // namespace

int run_program(const Order& order) {
  if (order.words.empty()) throw UsageError("run: which program? tessera run -n 8 ./program");
  auto words = launcher(order);
  words.insert(words.end(), order.words.begin(), order.words.end());
  return become(std::move(words));
}

// mpirun would add a dozen lines of its own to the one that says what is wrong, and its own statuses to
// ours: it is told to be quiet, and what it ends with is put into our terms. In a SLURM job it may have to
// say why it cannot start.
int run_again_as_ranks(const Order& order, int argc, char** argv) {
  auto words = launcher(order);
  if (!in_slurm()) words.insert(words.begin() + 1, "--quiet");
  char self[4096] = "";
  const auto length = readlink("/proc/self/exe", self, sizeof self - 1);
  words.emplace_back(length > 0 ? self : argv[0]);
  words.insert(words.end(), argv + 1, argv + argc);
  std::fflush(nullptr);
  const pid_t self_id = getpid();
  launched = fork();
  if (launched < 0) {
    std::fprintf(stderr, "tessera: no process can be started: %s\n", std::strerror(errno));
    return 1;
  }
  if (launched == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the ranks do not outlive the command
    if (getppid() != self_id) _exit(1);
    _exit(become(std::move(words)));
  }
  std::signal(SIGINT, SIG_IGN);  // a terminal sends it to mpirun as well
  for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, pass_on);
  int status = 0;
  while (waitpid(launched, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 2) return WEXITSTATUS(status);
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  if (number > 0 && number <= SIGSYS)
    std::fprintf(stderr, "tessera: the %d ranks were ended by signal %d (%s)\n", order.ranks, number,
                 strsignal(number));
  else
    std::fprintf(stderr, "tessera: %s ended with status %d\n", mpi_program().c_str(), WEXITSTATUS(status));
  return 1;
}

}  // namespace cli
