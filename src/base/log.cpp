#include "base/log.hpp"

#include <unistd.h>

#include <atomic>

namespace tessera {
namespace {
std::atomic<int> log_rank{0}, log_ranks{1};

void write_line(const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}
}  // namespace

void set_log_rank(int rank, int ranks) {
  log_rank = rank;
  log_ranks = ranks;
}

bool logs(LogLevel level) { return level <= settings().log; }

void log(LogLevel level, const std::string& message) {
  if (!logs(level)) return;
  const std::string who = log_ranks > 1 ? "[rank " + std::to_string(log_rank) + "] " : "";
  write_line(who + "tessera: " + message + "\n");
}

void log_once(LogLevel level, const std::string& message) {
  if (log_rank == 0 && logs(level)) write_line("tessera: " + message + "\n");
}

}  // namespace tessera
