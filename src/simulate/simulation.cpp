#include "simulate/simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>

#include <tessera/error.hpp>

#include "base/rates.hpp"
#include "base/text.hpp"
#include "base/text/seconds.hpp"
#include "program/hosts.hpp"

namespace tessera {
namespace {

std::string link_name(const LinkLoad& load) {
  const std::string side = load.is_out ? ", out" : ", in";
  if (load.level == 0) return "host " + std::to_string(load.number) + side;
  return "group " + std::to_string(load.number) + " of level " + std::to_string(load.level - 1) + side;
}

void add_calls(Simulation& s, const PlannedTimeline& planned, const TimelineResult& result) {
  for (std::size_t n = 0; n < planned.calls.size(); ++n)
    for (const bool waits : {false, true}) {
      const auto& sum = (waits ? result.waiting : result.computing)[n];
      if (sum.seconds <= 0 && sum.messages == 0) continue;
      (waits ? s.waiting_s : s.computing_s) += sum.seconds;
      s.calls.push_back(
          {planned.kinds[n], planned.calls[n], sum.seconds, sum.most_s, sum.bytes, sum.messages});
    }
  std::stable_sort(s.calls.begin(), s.calls.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

void add_links(Simulation& s, const TimelineResult& result) {
  constexpr std::size_t most_links = 8;
  for (const auto& load : result.loads) {
    if (s.links.size() == most_links) break;
    s.links.push_back({link_name(load), s.seconds > 0 ? load.busy_s / s.seconds : 0, load.bytes});
  }
}

void check(const SimulateOptions& options) {
  if (options.trace_ranks < 1 || options.most_messages < 1)
    throw ArgumentError("simulate: trace_ranks is " + std::to_string(options.trace_ranks) +
                        ", most_messages " + std::to_string(options.most_messages) + "; both are 1 or more");
}

Simulation simulation_of(const PlannedTimeline& planned, const Rates& machine,
                         const SimulateOptions& options) {
  const auto result = run_timeline(
      planned.plan, machine, options.trace_path.empty() ? 0 : options.trace_ranks, options.most_messages);
  Simulation s;
  s.seconds = result.seconds;
  s.first_end_s = *std::min_element(result.end_s.begin(), result.end_s.end());
  s.ranks = planned.plan.ranks, s.hosts = result.hosts, s.messages = result.messages;
  s.notes = planned.notes;
  add_calls(s, planned, result);
  add_links(s, result);
  if (!options.trace_path.empty()) write_timeline(planned, result, machine, options.trace_path);
  return s;
}

}  // namespace

Simulation simulation_of_program(const Program& program, const SimulateOptions& options) {
  check(options);
  const Rates machine = rates_of_job();
  return simulation_of(timeline_of(program, machine), machine, options);
}

Simulation simulation_of_hpl(std::int64_t n, int rows, int columns, const SimulateOptions& options) {
  check(options);
  constexpr std::int64_t block = 128;
  const Rates machine = rates();
  StepWriter writer(machine, rows * columns);
  writer.serve("hpl");
  write_hpl(writer, n, rows, columns, block);
  return simulation_of(writer.planned(), machine, options);
}

std::string to_string(const Simulation& s) {
  char line[256];
  std::snprintf(line, sizeof line, "%s on %s (%s), %s\n", format_seconds(s.seconds, 4).c_str(),
                format_count(s.ranks, "rank").c_str(), format_count(s.hosts, "host").c_str(),
                format_count(s.messages, "message").c_str());
  std::string text = line;
  std::snprintf(line, sizeof line,
                "a rank computes %s and waits %s in the mean; the first has ended after %s\n",
                format_seconds(s.computing_s, 4).c_str(), format_seconds(s.waiting_s, 4).c_str(),
                format_seconds(s.first_end_s, 4).c_str());
  text += line;
  text += "mean         longest      bytes of all  messages      of\n";
  constexpr std::size_t most_calls = 20;
  for (std::size_t n = 0; n < std::min(s.calls.size(), most_calls); ++n) {
    const auto& call = s.calls[n];
    std::snprintf(line, sizeof line, "%-12s %-12s %-13s %-13lld ", format_seconds(call.seconds, 4).c_str(),
                  format_seconds(call.most_seconds, 4).c_str(),
                  call.bytes > 0 ? format_bytes(static_cast<std::int64_t>(call.bytes)).c_str() : "-",
                  static_cast<long long>(call.messages));
    text += line + (call.kind.empty() ? std::string("computing ") : call.kind + " for ") + call.what + "\n";
  }
  for (const auto& link : s.links) {
    std::snprintf(line, sizeof line, "link of %s: in use for %.0f %% of the time, %s\n", link.name.c_str(),
                  100 * link.busy, format_bytes(static_cast<std::int64_t>(link.bytes)).c_str());
    text += line;
  }
  for (const auto& note : s.notes) text += "not followed one by one: " + note + "\n";
  return text;
}
std::ostream& operator<<(std::ostream& out, const Simulation& s) { return out << to_string(s); }

void write_timeline(const PlannedTimeline& planned, const TimelineResult& result, const Rates& machine,
                    const std::string& path) {
  std::ofstream file(path);
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const nlohmann::json& line) { file << separator << line.dump(), separator = ",\n"; };
  int most = -1;
  for (const auto& span : result.spans) most = std::max(most, span.rank);
  const int of_a_host = machine.topology.ranks_per_host;
  for (int rank = 0; rank <= most; ++rank) {
    const auto named = [&](const char* what, int track, const std::string& name) {
      add({{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}});
    };
    named(
        "process_name", 0,
        "rank " + std::to_string(rank) + " on host " + std::to_string(of_a_host > 0 ? rank / of_a_host : 0));
    named("thread_name", 0, "computes");
    named("thread_name", 1, "waits");
  }
  for (const auto& span : result.spans) {
    const auto name = static_cast<std::size_t>(span.name);
    add({{"name", planned.plan.names[name]},
         {"cat", planned.kinds[name].empty() ? "compute" : planned.kinds[name]},
         {"ph", "X"},
         {"pid", span.rank},
         {"tid", span.waits ? 1 : 0},
         {"ts", span.start_s * 1e6},
         {"dur", span.seconds * 1e6}});
  }
  file << "\n]}\n";
  if (!file.flush())
    throw IoError("simulate: " + in_quotes(path) + " cannot be written: " + std::strerror(errno) +
                  "; check the path and its permissions");
}

}  // namespace tessera
