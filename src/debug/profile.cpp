// Where the time of a program goes, step by step.
#include <tessera/debug.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "base/text.hpp"
#include "run/executable.hpp"
#include "run/watch.hpp"

namespace tessera::debug {
namespace {

struct Event {
  std::string name, category, site;
  double start_s, seconds;
  std::int64_t bytes;
};

// "matmul", "all-gather for matmul", "add+multiply+exp"
std::string name_of(const Instruction& i) {
  const auto kind = collective_kind(i);
  std::string op = i.op != nullptr ? i.op->name : std::string();
  if (const auto* chain = i.as<FusedChain>()) {
    op = chain_text(*chain);
    if (op.size() > 48) op = op.substr(0, 45) + "...";
  }
  if (kind.empty()) return op.empty() ? "copy" : op;
  return op.empty() ? kind : kind + " for " + op;
}

}  // namespace

struct profile::Impl : RunWatcher {
  std::vector<Event> events;
  RunWatcher* outer = nullptr;
  double start_s = 0;
  void step(const StepTime& time) override {
    const auto kind = collective_kind(time.instruction);
    events.push_back({name_of(time.instruction), kind.empty() ? "compute" : kind,
                      site(time.instruction.where), time.start_s, time.seconds,
                      kind.empty() ? 0 : time.instruction.bytes});
  }
};

profile::profile(std::string trace_path)
    : impl_(std::make_unique<Impl>()), trace_path_(std::move(trace_path)) {
  impl_->outer = run_watcher();
  impl_->start_s = watch_clock_s();
  run_watcher() = impl_.get();
}

profile::~profile() {
  run_watcher() = impl_->outer;
  if (trace_path_.empty()) return;
  try {
    write(trace_path_);
  } catch (const std::exception& error) {
    log(LogLevel::error, error.what());
  }
}

double profile::seconds() const {
  double sum = 0;
  for (const auto& event : impl_->events) sum += event.seconds;
  return sum;
}
std::int64_t profile::steps() const { return static_cast<std::int64_t>(impl_->events.size()); }

std::string profile::table() const {
  struct Row {
    std::int64_t calls = 0, bytes = 0;
    double seconds = 0;
  };
  std::map<std::string, Row> rows;
  for (const auto& event : impl_->events) {
    auto& row = rows[event.name + " at " + event.site];
    ++row.calls;
    row.bytes += event.bytes;
    row.seconds += event.seconds;
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  const double total = seconds();
  char line[256];
  std::string text =
      "     calls         ms   share       bytes  step (rank " + std::to_string(process_index()) + ")\n";
  for (const auto& [name, row] : sorted) {
    std::snprintf(line, sizeof line, "%10lld %10.3f %6.1f%% %11s  ", static_cast<long long>(row.calls),
                  row.seconds * 1e3, total > 0 ? 100 * row.seconds / total : 0,
                  row.bytes > 0 ? format_bytes(row.bytes).c_str() : "");
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
  nlohmann::json events = nlohmann::json::array();
  for (const auto& event : impl_->events)
    events.push_back({{"name", event.name},
                      {"cat", event.category},
                      {"ph", "X"},
                      {"pid", process_index()},
                      {"tid", event.category == "compute" ? 0 : 1},
                      {"ts", (event.start_s - impl_->start_s) * 1e6},
                      {"dur", event.seconds * 1e6},
                      {"args", {{"at", event.site}, {"bytes", event.bytes}}}});
  std::ofstream file(own);
  file << nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() << "\n";
  if (!file.flush())
    throw IoError("profile: " + tessera::quoted(own) + " cannot be written: " + std::strerror(errno) +
                  "; check the path and its permissions");
}

void set_nan_check(bool on) { nan_check_on() = on; }

}  // namespace tessera::debug
