#include "comm/watch/work.hpp"

#include <pthread.h>

#include <cstdio>
#include <utility>

namespace tessera::comm {
namespace {

std::int64_t read_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

WorkMeter::WorkMeter() : session_thread_(CLOCK_PROCESS_CPUTIME_ID) {
  if (clockid_t clock = 0; pthread_getcpuclockid(pthread_self(), &clock) == 0) session_thread_ = clock;
  before_ = so_far();
}

Work WorkMeter::so_far() const {
  Work work{read_ns(session_thread_), read_ns(CLOCK_PROCESS_CPUTIME_ID), 0};
  if (std::FILE* file = std::fopen("/proc/self/io", "re")) {
    long long read = 0, written = 0;
    if (std::fscanf(file, "rchar: %lld wchar: %lld", &read, &written) == 2) work.file_bytes = read + written;
    std::fclose(file);
  }
  return work;
}

bool WorkMeter::has_worked(std::int64_t passed_ns, bool in_library) {
  const Work now = so_far(), before = std::exchange(before_, now);
  const auto cpu_ns =
      in_library ? now.process_cpu_ns - before.process_cpu_ns : now.thread_cpu_ns - before.thread_cpu_ns;
  return cpu_ns > passed_ns / 50 || now.file_bytes - before.file_bytes > 65536;
}

}  // namespace tessera::comm
