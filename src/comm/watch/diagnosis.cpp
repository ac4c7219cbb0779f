// Analyses flight records: finds the ranks of the job that keep the others waiting.
#include <tessera/error.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "comm/watch/flight_record.hpp"

namespace tessera::comm {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

std::int64_t number_of(const std::string& text) {
  try {
    return std::stoll(text);
  } catch (const std::exception&) {
    throw ArgumentError("not a flight record: " + in_quotes(text.substr(0, 40)) +
                        " stands where a number belongs");
  }
}

FlightCall parse_call(const std::string& line) {
  auto fields = split(line, '\t');
  if (fields.size() < 7)
    throw ArgumentError("not a flight record: a call of " + std::to_string(fields.size()) + " fields");
  fields.resize(8);
  FlightCall call;
  call.number = number_of(fields[1]), call.bytes = number_of(fields[2]);
  call.start_s = static_cast<double>(number_of(fields[3])) * 1e-9;
  call.stop_s = static_cast<double>(number_of(fields[4])) * 1e-9;
  call.what = fields[5], call.group = fields[6], call.purpose = fields[7];
  return call;
}

std::string described(const FlightCall& call) {
  std::string text = call.what + " on " + call.group;
  if (call.bytes > 0) text += ", " + format_bytes(call.bytes);
  return call.purpose.empty() ? text : text + ", for " + call.purpose;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::max(0.0, seconds));
  return text;
}

// The activity of a rank, in words that are equal for ranks in the same state.
std::string doing(const FlightRecord& record) {
  if (record.calls.empty()) return "has not talked to another rank yet";
  const auto& last = record.calls.back();
  return record.waits()
             ? "waits in call #" + std::to_string(last.number) + ": " + described(last)
             : "computes; its last call was #" + std::to_string(last.number) + ": " + described(last);
}

double since_s(const FlightRecord& record) {
  if (record.calls.empty()) return 0;
  const auto& last = record.calls.back();
  return record.clock_s - (record.waits() ? last.start_s : last.stop_s);
}

bool crashed(const FlightRecord& record) { return record.reason.starts_with("crash"); }

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ids(ranks);
}
std::string verb(const std::vector<int>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

struct Job {
  std::vector<FlightRecord> records;  // by rank
  std::vector<int> gone, crashed, computing, waiting;

  const FlightRecord& of(int rank) const {
    return *std::find_if(records.begin(), records.end(), [&](const auto& r) { return r.rank == rank; });
  }
};

Job sort_out(std::vector<FlightRecord> records) {
  Job job;
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  job.records = std::move(records);
  std::set<int> there;
  for (const auto& record : job.records) {
    there.insert(record.rank);
    (crashed(record) ? job.crashed : record.waits() ? job.waiting : job.computing).push_back(record.rank);
  }
  for (int rank = 0; rank < job.records.front().ranks; ++rank)
    if (!there.contains(rank)) job.gone.push_back(rank);
  return job;
}

// One line for all ranks in the same state.
std::string places_text(const Job& job) {
  struct RanksAtCall {
    std::vector<int> ranks;
    std::set<std::string> hosts;
    double longest_s = 0;
  };
  std::map<std::string, RanksAtCall> places;
  for (const auto& record : job.records) {
    auto& place =
        places[crashed(record) ? "ended by a " + record.reason + "; it " + doing(record) : doing(record)];
    place.ranks.push_back(record.rank);
    place.hosts.insert(record.host);
    place.longest_s = std::max(place.longest_s, since_s(record));
  }
  std::vector<std::pair<std::string, RanksAtCall>> sorted(places.begin(), places.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.ranks.front() < b.second.ranks.front(); });
  std::string text;
  for (const auto& [what, place] : sorted)
    text += ranks_text(place.ranks) + " (" + join({place.hosts.begin(), place.hosts.end()}, ", ") +
            "), for " + seconds_text(place.longest_s) + ": " + what + "\n";
  if (!job.gone.empty()) text += ranks_text(job.gone) + ": no record\n";
  return text;
}

std::string verdict_on_crash(const Job& job) {
  std::string text;
  for (const int rank : job.crashed)
    text +=
        "rank " + std::to_string(rank) + " (" + job.of(rank).host + ", process " +
        std::to_string(job.of(rank).process) + ") ended by a " + job.of(rank).reason + ": look there first" +
        (job.of(rank).calls.empty() ? "" : "; its last call was for " + job.of(rank).calls.back().purpose) +
        "\n";
  if (!job.gone.empty()) text += ranks_text(job.gone) + " left no record: ended with the job\n";
  return text;
}

// Ranks that wait in one group, but in different calls: reports the smallest set as the one that differs.
std::string verdict_on_difference(const Job& job) {
  std::map<std::string, std::map<std::string, std::vector<int>>> by_group;
  for (const int rank : job.waiting) {
    const auto& last = job.of(rank).calls.back();
    by_group[last.group][described(last)].push_back(rank);
  }
  std::string text;
  for (const auto& [group, calls] : by_group) {
    if (calls.size() < 2) continue;
    const auto fewest = std::min_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    text += ranks_text(fewest->second) + " " + verb(fewest->second, "differs", "differ") +
            " from the others on " + group + ": in " + fewest->first + ", while\n";
    for (const auto& [call, ranks] : calls)
      if (call != fewest->first)
        text += "  " + ranks_text(ranks) + " " + verb(ranks, "is", "are") + " in " + call + "\n";
  }
  return text;
}

std::string verdict(const Job& job) {
  if (!job.crashed.empty()) return verdict_on_crash(job);
  const bool goes_on = job.gone.empty() && std::all_of(job.records.begin(), job.records.end(),
                                                       [](const auto& r) { return since_s(r) < 1; });
  if (goes_on) return "every rank has begun or finished a call within the last second: the job goes on\n";
  std::string text;
  if (!job.gone.empty())
    text += ranks_text(job.gone) + " " + verb(job.gone, "is", "are") +
            " gone, or stopped, or cut off with the host: " + verb(job.gone, "it has", "they have") +
            " written nothing, and the others wait for " + verb(job.gone, "it", "them") + "\n";
  if (!job.computing.empty() && !job.waiting.empty())
    text += ranks_text(job.computing) + " " + verb(job.computing, "computes", "compute") + " (or " +
            verb(job.computing, "works", "work") + " on files), and the others wait for " +
            verb(job.computing, "it", "them") + "; an endless loop shows in a debugger: gdb -p " +
            std::to_string(job.of(job.computing.front()).process) + " on " +
            job.of(job.computing.front()).host + "\n";
  text += verdict_on_difference(job);
  if (!text.empty()) return text;
  if (job.waiting.empty()) return "all ranks compute: nobody waits\n";
  std::set<std::string> groups;
  for (const int rank : job.waiting) groups.insert(job.of(rank).calls.back().group);
  if (groups.size() > 1) return "all ranks wait, in different groups: for each other, if nobody goes on\n";
  return "all ranks are in the same call: it goes on, or the network between the hosts does not\n";
}

}  // namespace

FlightRecord parse_flight_record(const std::string& text) {
  std::istringstream stream(text);
  std::string line;
  if (!std::getline(stream, line) || line != "tessera flight record 1")
    throw ArgumentError("not a flight record: it begins with " + in_quotes(line.substr(0, 40)));
  FlightRecord record;
  while (std::getline(stream, line)) {
    const auto space = line.find_first_of(" \t");
    const std::string key = line.substr(0, space),
                      value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "rank") record.rank = static_cast<int>(number_of(value));
    if (key == "ranks") record.ranks = static_cast<int>(std::min<std::int64_t>(number_of(value), 1 << 24));
    if (key == "process") record.process = static_cast<int>(number_of(value));
    if (key == "host") record.host = value;
    if (key == "reason") record.reason = value;
    if (key == "job") record.job = value;
    if (key == "date") record.date_s = static_cast<double>(number_of(value));
    if (key == "clock") record.clock_s = static_cast<double>(number_of(value)) * 1e-9;
    if (key == "call") record.calls.push_back(parse_call(line));
  }
  return record;
}

// Keeps the records of the job that wrote last; returns a note on the others.
static std::string leave_out_other_jobs(std::vector<FlightRecord>& records) {
  const auto newest = std::max_element(records.begin(), records.end(),
                                       [](const auto& a, const auto& b) { return a.date_s < b.date_s; });
  const std::string job = newest->job;
  std::vector<int> others;
  for (const auto& record : records)
    if (record.job != job) others.push_back(record.rank);
  std::erase_if(records, [&](const auto& record) { return record.job != job; });
  std::sort(others.begin(), others.end());
  return others.empty()
             ? ""
             : "left out: " + ranks_text(others) + " of another job that wrote to this folder before\n";
}

std::string diagnose(std::vector<FlightRecord> records) {
  if (records.empty()) return "no flight records\n";
  const std::string left_out = leave_out_other_jobs(records);
  const Job job = sort_out(std::move(records));
  std::set<std::string> hosts, reasons;
  for (const auto& record : job.records) hosts.insert(record.host), reasons.insert(record.reason);
  return left_out + format_count(static_cast<std::int64_t>(job.records.size()), "record") + " of " +
         format_count(job.records.front().ranks, "rank") + " on " +
         format_count(static_cast<std::int64_t>(hosts.size()), "host") + ", written on " +
         join({reasons.begin(), reasons.end()}, ", ") + "\n" + places_text(job) + "=> " + verdict(job);
}

}  // namespace tessera::comm
