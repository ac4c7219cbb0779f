// The table over all ranks: the time of each step, and the ranks that keep others waiting.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rates.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "compile/cost.hpp"
#include "run/profile/recording.hpp"

namespace tessera {
namespace {

// The spread of one quantity over the ranks that have it.
struct Spread {
  double least = std::numeric_limits<double>::infinity(), most = 0, sum = 0;
  int ranks = 0, most_rank = 0;
  void add(double value, int rank) {
    least = std::min(least, value);
    if (ranks == 0 || value > most) most = value, most_rank = rank;
    sum += value;
    ++ranks;
  }
  double mean() const { return ranks == 0 ? 0 : sum / ranks; }
  double imbalance() const { return mean() > 0 ? most / mean() : 1; }
};

struct Row {
  std::string name, kind;
  std::int64_t calls = 0;          // calls of the rank with the most calls
  double bytes = 0, crossing = 0;  // sum over all ranks
  double flops = 0, accessed = 0;  // of all ranks
  Spread seconds;
};

struct Peak {
  std::int64_t bytes = -1, step_bytes = 0, all = 0;
  std::string step;
  int rank = 0;
};

struct Merged {
  std::vector<Row> rows;
  Spread compute, communication;
  Peak peak;
};

Row& row_of(std::vector<Row>& rows, const std::string& name, const std::string& kind) {
  for (auto& row : rows)
    if (row.name == name) return row;
  rows.push_back({name, kind, 0, 0, 0, 0, 0, {}});
  return rows.back();
}

Merged merge(const std::vector<std::string>& recordings) {
  Merged all;
  for (std::size_t r = 0; r < recordings.size(); ++r) {
    const auto json = nlohmann::json::parse(recordings[r]);
    const int rank = static_cast<int>(r);
    double compute = 0, communication = 0;
    for (const auto& [name, s] : json["steps"].items()) {
      const double seconds = s[4].get<double>();
      auto& row = row_of(all.rows, name, s[0].get<std::string>());
      (row.kind == "compute" ? compute : communication) += seconds;
      row.calls = std::max(row.calls, s[1].get<std::int64_t>());
      row.bytes += s[2].get<double>(), row.crossing += s[3].get<double>();
      row.flops += s[5].get<double>(), row.accessed += s[6].get<double>();
      row.seconds.add(seconds, rank);
    }
    all.compute.add(compute, rank), all.communication.add(communication, rank);
    const auto& peak = json["peak"];
    const auto bytes = peak[0].get<std::int64_t>();
    all.peak.all += bytes;
    if (bytes > all.peak.bytes)
      all.peak = {bytes, peak[1].get<std::int64_t>(), all.peak.all, peak[2].get<std::string>(), rank};
  }
  std::stable_sort(all.rows.begin(), all.rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds.sum > b.seconds.sum; });
  return all;
}

// "12.1 GF/s, 60 %"; without the percentage if the limit is not measured.
std::string rate_text(double per_second, const char* unit, double limit, bool is_measured) {
  char text[64];
  std::snprintf(text, sizeof text, is_measured ? "%.3g %s, %.0f %%" : "%.3g %s", per_second / 1e9, unit,
                100 * per_second / limit);
  return text;
}

// The rate that is closer to its limit; "" for calls too short to measure.
std::string rate_of(const Row& row, const Rates& machine) {
  constexpr double shortest_s = 5e-6;
  if (row.seconds.mean() <= shortest_s * static_cast<double>(row.calls)) return "";
  const double flops = row.flops / row.seconds.sum, accessed = row.accessed / row.seconds.sum;
  if (row.kind != "compute") {
    if (row.bytes <= 0) return "";
    const bool crosses = row.crossing > 0;
    const double moved = (crosses ? row.crossing : row.bytes) / row.seconds.sum;
    return rate_text(moved, "GB/s", crosses ? machine.between.bytes_per_s : machine.inside.bytes_per_s,
                     crosses ? machine.has_between : machine.has_inside);
  }
  if (flops / machine.flops_per_s >= accessed / machine.memory_bytes_per_s)
    return rate_text(flops, "GF/s", machine.flops_per_s, machine.has_compute);
  return rate_text(accessed, "GB/s", machine.memory_bytes_per_s, machine.has_compute);
}

std::string bytes_or_nothing(double bytes) {
  return bytes > 0 ? format_bytes(static_cast<std::int64_t>(bytes)) : "";
}

std::string line_of(const Row& row, double total, const Rates& machine) {
  char line[256];
  const auto& s = row.seconds;
  std::snprintf(line, sizeof line, "%8lld %10.3f %10.3f %10.3f %6.2f %5.1f%% %11s %11s  %-22s",
                static_cast<long long>(row.calls), s.least * 1e3, s.mean() * 1e3, s.most * 1e3, s.imbalance(),
                total > 0 ? 100 * s.sum / total : 0,
                bytes_or_nothing(std::max(0.0, row.bytes - row.crossing)).c_str(),
                bytes_or_nothing(row.crossing).c_str(), rate_of(row, machine).c_str());
  return line + row.name + "\n";
}

std::string spread_text(const char* what, const Spread& s, const std::vector<std::string>& hosts) {
  char line[200];
  std::snprintf(line, sizeof line, "%-14s %10.3f %10.3f %10.3f %6.2f  most on rank %d (%s)\n", what,
                s.least * 1e3, s.mean() * 1e3, s.most * 1e3, s.imbalance(), s.most_rank,
                hosts[static_cast<std::size_t>(s.most_rank)].c_str());
  return line;
}

std::string memory_text(const Peak& peak, const std::vector<std::string>& hosts) {
  if (peak.step.empty()) return "memory         no step ran\n";
  return "memory         peak " + format_bytes(peak.bytes) + " on rank " + std::to_string(peak.rank) + " (" +
         hosts[static_cast<std::size_t>(peak.rank)] + "), while " + peak.step +
         " ran: its operands and results " + format_bytes(peak.step_bytes) +
         ", other arrays and temporaries " + format_bytes(peak.bytes - peak.step_bytes) +
         "; all ranks' peaks together " + format_bytes(peak.all) + "\n";
}

std::string limits_text(const Rates& m) {
  char line[256];
  std::snprintf(line, sizeof line,
                "limits         %.3g GF/s and %.3g GB/s of memory per rank, %.3g GB/s inside a host, %.3g "
                "GB/s between hosts (%s)\n",
                m.flops_per_s / 1e9, m.memory_bytes_per_s / 1e9, m.inside.bytes_per_s / 1e9,
                m.between.bytes_per_s / 1e9,
                m.has_compute ? "measured here: tessera machine" : "not measured here: tessera machine does");
  return line;
}

}  // namespace

std::string report_text(const std::vector<std::string>& recordings, const std::vector<std::string>& hosts,
                        const Rates& machine) {
  const Merged all = merge(recordings);
  const double total = all.compute.sum + all.communication.sum;
  const std::set<std::string> distinct(hosts.begin(), hosts.end());
  std::string text =
      format_count(static_cast<std::int64_t>(hosts.size()), "rank") + " on " +
      format_count(static_cast<std::int64_t>(distinct.size()), "host") +
      "; milliseconds of a rank: least, mean, most, most / mean\n" +
      spread_text("compute", all.compute, hosts) + spread_text("communication", all.communication, hosts) +
      memory_text(all.peak, hosts) + limits_text(machine) +
      "   calls      least       mean       most   m/m  share inside hosts     between  rate, of "
      "the limit  step\n";
  for (const auto& row : all.rows) text += line_of(row, total, machine);
  return text;
}

std::string report_of_all(const ProfileRecording& recording) {
  const auto& hosts = comm::place_in_job().hosts;
  return report_text(comm::gather_texts(comm::world(), recording_text(recording)),
                     hosts.empty() ? std::vector<std::string>{"this host"} : hosts, rates());
}

}  // namespace tessera
