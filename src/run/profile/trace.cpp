// Chrome traces: a process per host, with two tracks per rank, one for computing and one for communicating.
#include <tessera/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/point_to_point.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/agreement.hpp"
#include "run/profile/recording.hpp"

namespace tessera {
namespace {

// Times count from rank 0's start of recording; `shift_s` is added to this rank's clock.
std::string events_text(const ProfileRecording& recording, int rank, double origin_s, double shift_s) {
  std::string text;
  for (const auto& event : recording.events()) {
    const bool computes = event.category == "compute";
    const nlohmann::json line = {
        {"name", event.ends ? "end of " + event.name : event.name},
        {"cat", event.category},
        {"ph", "X"},
        {"pid", rank},
        {"tid", computes ? 0 : 1},
        {"ts", (event.start_s + shift_s - origin_s) * 1e6},
        {"dur", event.seconds * 1e6},
        {"args",
         {{"at", event.site}, {"bytes", event.bytes}, {"bytes between hosts", event.crossing_bytes}}}};
    text += ",\n" + line.dump();
  }
  return text;
}

nlohmann::json name_line(const char* what, int pid, int tid, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

// The file's head with the names of tracks; events follow, each after a comma.
std::string head_text(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const nlohmann::json& line) { text += separator + line.dump(), separator = ",\n"; };
  for (const int rank : ranks) {
    add(name_line("process_name", rank, 0, "rank " + std::to_string(rank) + " on " + hosts[rank]));
    add(name_line("thread_name", rank, 0, "computes"));
    add(name_line("thread_name", rank, 1, "communicates"));
  }
  return text;
}

class TraceFile {
 public:
  explicit TraceFile(std::string path) : path_(std::move(path)), file_(path_) {}
  void add(const std::string& text) { file_ << text; }
  std::string finish() {  // returns the error, if any
    file_ << "\n]}\n";
    if (file_.flush()) return "";
    return "profile: " + in_quotes(path_) + " cannot be written: " + std::strerror(errno) +
           "; check the path and its permissions";
  }

 private:
  std::string path_;
  std::ofstream file_;
};

std::vector<std::string> host_names() {
  const auto& hosts = comm::place_in_job().hosts;
  return hosts.empty() ? std::vector<std::string>{"this host"} : hosts;
}

// The shift from this rank's clock to rank 0's. Ranks of a host share a clock; for the others it is measured
// by the fastest of several queries to rank 0, exact to half of its round trip. Collective over all ranks.
double clock_shift() {
  const auto& all = comm::world();
  constexpr int questions = 8;
  double shift = 0, quickest = 1e300;
  for (int rank = 1; rank < all.size(); ++rank) {
    if (comm::on_one_host(rank, 0) || (all.rank() != 0 && all.rank() != rank)) continue;
    for (int q = 0; q < questions; ++q) {
      double word = 0;
      if (all.rank() == 0) {
        comm::receive(all, std::span<double>(&word, 1), rank);
        word = watch_clock_s();
        comm::send(all, std::span<const double>(&word, 1), rank);
        continue;
      }
      const double asked = watch_clock_s();
      comm::send(all, std::span<const double>(&asked, 1), 0);
      comm::receive(all, std::span<double>(&word, 1), 0);
      const double answered = watch_clock_s();
      if (answered - asked >= quickest) continue;
      quickest = answered - asked;
      shift = word - (asked + answered) / 2;
    }
  }
  return shift;
}

// Sends the events to rank 0, one rank after the other, so that it never holds more than one rank's events.
void collect(const std::string& mine, TraceFile* file) {
  const auto& all = comm::world();
  if (file == nullptr) {
    const auto bytes = static_cast<std::int64_t>(mine.size());
    comm::send(all, std::span<const std::int64_t>(&bytes, 1), 0);
    return comm::send(all, mine.data(), bytes, 0);
  }
  file->add(mine);
  for (int rank = 1; rank < all.size(); ++rank) {
    std::int64_t bytes = 0;
    comm::receive(all, std::span<std::int64_t>(&bytes, 1), rank);
    std::string theirs(static_cast<std::size_t>(bytes), ' ');
    comm::receive(all, theirs.data(), bytes, rank);
    file->add(theirs);
  }
}

}  // namespace

void write_trace(const ProfileRecording& recording, const std::string& path) {
  const int me = comm::place_in_job().rank;
  TraceFile file(path);
  file.add(head_text({me}, host_names()));
  file.add(events_text(recording, me, recording.start_s(), 0));
  const auto error = file.finish();
  if (!error.empty()) throw IoError(error);
}

void write_trace_of_all(const ProfileRecording& recording, const std::string& path) {
  const auto& all = comm::world();
  double origin_s = recording.start_s();
  comm::broadcast(all, std::span<double>(&origin_s, 1), 0);
  const auto mine = events_text(recording, all.rank(), origin_s, clock_shift());
  std::string error;
  if (all.rank() == 0) {
    TraceFile file(path);
    file.add(head_text(all.device_ids(), host_names()));
    collect(mine, &file);
    error = file.finish();
  } else {
    collect(mine, nullptr);
  }
  error = comm::common_error(all, error);
  if (!error.empty()) throw IoError(error);
}

}  // namespace tessera
