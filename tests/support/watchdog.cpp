#include "support/watchdog.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::test {
namespace {

using Clock = std::chrono::steady_clock;

std::mutex mutex;
std::string& current = *new std::string("start-up");  // never destroyed: the thread lives until the end
Clock::time_point since;

std::array<void*, 48> frames;
std::atomic<int> frame_count{0};

void remember_stack(int) { frame_count = backtrace(frames.data(), static_cast<int>(frames.size())); }

// "file.cpp:12 function" for an address, by addr2line; the raw symbol if that fails.
std::string describe(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "?";
  const auto offset = static_cast<char*>(address) - static_cast<char*>(info.dli_fbase) - 1;
  char command[1200];
  std::snprintf(command, sizeof command, "addr2line -Cfpse '%s' 0x%lx 2>/dev/null", info.dli_fname,
                static_cast<unsigned long>(offset));
  std::string text;
  if (FILE* pipe = popen(command, "r")) {
    char line[600];
    if (std::fgets(line, sizeof line, pipe)) text = line;
    pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty() || text.starts_with("??"))
    text = std::string(info.dli_sname ? info.dli_sname : "?") + " in " + info.dli_fname;
  return text.substr(0, 200);
}

void watch(pthread_t main_thread, int rank, double limit_s) {
  const std::chrono::duration<double> limit(limit_s);
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::string test;
    {
      const std::scoped_lock lock(mutex);
      if (Clock::now() - since < limit) continue;
      test = current;
    }
    pthread_kill(main_thread, SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::string report = "[rank " + std::to_string(rank) + "] no progress for " +
                         std::to_string(static_cast<int>(limit_s)) + " s in " + test + "\n";
    for (int i = 2; i < frame_count; ++i) {
      const std::string frame = describe(frames[i]);
      if (frame.find("testing::") != std::string::npos) break;  // frames below the test's body
      report += "[rank " + std::to_string(rank) + "]   " + frame + "\n";
    }
    std::fputs(report.c_str(), stderr);
    std::fflush(stderr);
    std::this_thread::sleep_for(
        std::chrono::seconds(3));  // time for other ranks to print: mpirun ends them when this one exits
    _exit(124);
  }
}

}  // namespace

void test_started(const char* suite, const char* name) {
  const std::scoped_lock lock(mutex);
  current = std::string(suite) + "." + name;
  since = Clock::now();
}

void start_watchdog(int rank, double limit_s) {
  since = Clock::now();
  void* warm_up[1];
  backtrace(warm_up, 1);  // loads libgcc outside the signal handler
  struct sigaction action {};
  action.sa_handler = remember_stack;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
  std::thread(watch, pthread_self(), rank, limit_s).detach();
}

}  // namespace tessera::test
