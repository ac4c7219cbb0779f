// The time of a program, step by step.
#include <tessera/debug.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/log.hpp"
#include "base/text.hpp"
#include "run/profile/recording.hpp"

namespace tessera::debug {

struct profile::Impl {
  ProfileRecording recording;
  int exceptions_before = std::uncaught_exceptions();
};

profile::profile(std::string trace_path)
    : impl_(std::make_unique<Impl>()), trace_path_(std::move(trace_path)) {}

profile::~profile() {
  if (trace_path_.empty()) return;
  try {
    if (std::uncaught_exceptions() > impl_->exceptions_before)
      write(trace_path_);
    else
      write_all(trace_path_);
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
  }
}

double profile::seconds() const {
  double sum = 0;
  for (const auto& event : impl_->recording.events()) sum += event.seconds;
  return sum;
}
std::int64_t profile::steps() const {
  const auto& events = impl_->recording.events();
  return std::count_if(events.begin(), events.end(), [](const auto& event) { return !event.ends; });
}

std::string profile::table() const {
  using Row = std::pair<std::string, StepSum>;
  const auto& sums = impl_->recording.sums();
  std::vector<Row> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row& a, const Row& b) { return a.second.seconds > b.second.seconds; });
  const double total = seconds();
  char line[256];
  std::string text =
      "     calls         ms   share       bytes  step (rank " + std::to_string(process_index()) + ")\n";
  for (const auto& [name, sum] : sorted) {
    std::snprintf(line, sizeof line, "%10lld %10.3f %6.1f%% %11s  ", static_cast<long long>(sum.calls),
                  sum.seconds * 1e3, total > 0 ? 100 * sum.seconds / total : 0,
                  sum.bytes > 0 ? format_bytes(sum.bytes).c_str() : "");
    text += line + name + "\n";
  }
  return text;
}

// trace.json -> trace.3.json on rank 3.
void profile::write(const std::string& path) const {
  const auto dot = path.rfind('.');
  const bool has_ending = dot != std::string::npos && path.find('/', dot) == std::string::npos;
  const std::string own = process_count() == 1
                              ? path
                              : (has_ending ? path.substr(0, dot) : path) + "." +
                                    std::to_string(process_index()) + (has_ending ? path.substr(dot) : "");
  write_trace(impl_->recording, own);
}

std::string profile::report() const { return report_of_all(impl_->recording); }
void profile::write_all(const std::string& path) const { write_trace_of_all(impl_->recording, path); }

void set_nan_check(bool on) { nan_check_on() = on; }

}  // namespace tessera::debug
