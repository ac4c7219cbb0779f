// tessera profile PROGRAM: starts the program as tessera run does, unchanged. Its runtime profiles itself if
// the environment names a folder; the report written there is shown.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "commands.hpp"
#include "launcher.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;

pid_t started = 0;
void pass_on(int signal) {
  if (started > 0) kill(started, signal);
}

// Replaces this process by `tessera run` with these words.
[[noreturn]] void become_run(const Order& order) {
  std::error_code none;
  const auto self = fs::read_symlink("/proc/self/exe", none);
  std::vector<std::string> words = {self.string(), "run"};
  if (order.ranks > 0) words.insert(words.end(), {"-n", std::to_string(order.ranks)});
  words.insert(words.end(), order.words.begin(), order.words.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "tessera: %s cannot be started: %s\n", argv[0], std::strerror(errno));
  _exit(1);
}

// The program's exit status; -1 if a signal ended it, or it could not be started.
int run_and_wait(const Order& order) {
  std::fflush(nullptr);
  const pid_t self = getpid();
  started = fork();
  if (started < 0) std::fprintf(stderr, "tessera: no process can be started: %s\n", std::strerror(errno));
  if (started < 0) return -1;
  if (started == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // the ranks must not outlive the command
    if (getppid() != self) _exit(1);
    become_run(order);
  }
  std::signal(SIGINT, SIG_IGN);  // a terminal sends it to mpirun too
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, pass_on);
  int status = 0;
  while (waitpid(started, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int profile_program(const Order& order) {
  if (order.words.empty()) throw UsageError("profile: which program? tessera profile -n 8 ./program");
  if (!is_module(order.words)) require_program("profile", order.words.front(), "");
  const fs::path folder = fs::absolute(order.output.empty() ? "profile" : order.output);
  const fs::path report = folder / "report.txt";
  setenv("TESSERA_PROFILE", folder.c_str(), 1);
  std::error_code none;
  fs::remove(report, none);  // removes the report of an earlier program
  const int status = run_and_wait(order);
  std::ifstream text(report);
  if (!text) {
    std::fprintf(stderr, "tessera: the program left no profile in %s: it failed, or does not use tessera\n",
                 folder.c_str());
    return status > 0 ? status : 1;
  }
  std::cout << text.rdbuf() << "trace for Perfetto (ui.perfetto.dev) or chrome://tracing: "
            << (folder / "trace.json").string() << std::endl;
  return status < 0 ? 1 : status;
}

}  // namespace cli
