// Records the times of a rank's steps as they run, and reports over all ranks' recordings.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/watch.hpp"

namespace tessera {

// Sums over all calls of one step of a program: "matmul at train.cpp:12".
struct StepSum {
  std::string kind;  // "compute", or the kind of collective
  std::int64_t calls = 0, bytes = 0, crossing_bytes = 0;
  double seconds = 0, flops = 0, accessed_bytes = 0;
};

struct PeakMemory {
  std::int64_t bytes = 0;       // all memory that this rank held at that time
  std::int64_t step_bytes = 0;  // the part for operands and results of the running step
  std::string step;
};

class ProfileRecording final : public RunWatcher {
 public:
  struct Event {
    std::string name, category, site;
    double start_s, seconds;
    std::int64_t bytes, crossing_bytes;
    bool ends;  // the second half of a collective
  };

  ProfileRecording();  // starts recording
  ~ProfileRecording() override;
  ProfileRecording(const ProfileRecording&) = delete;
  ProfileRecording& operator=(const ProfileRecording&) = delete;

  void step(const StepTime&) override;
  const std::vector<Event>& events() const { return events_; }
  const std::map<std::string, StepSum>& sums() const { return sums_; }
  const PeakMemory& peak() const { return peak_; }
  double start_s() const { return start_s_; }

 private:
  void look_at_memory(const StepTime&, const std::string& step);

  std::vector<Event> events_;
  std::map<std::string, StepSum> sums_;  // by step
  PeakMemory peak_;
  std::int64_t known_peak_ = 0;
  RunWatcher* outer_;
  double start_s_;
};

// One rank's recording as text for other ranks.
std::string recording_text(const ProfileRecording&);
// The table over all ranks, from their texts and host names. Pure.
struct Rates;
std::string report_text(const std::vector<std::string>& recordings, const std::vector<std::string>& hosts,
                        const Rates&);
// Collective over all ranks, which all get the report.
std::string report_of_all(const ProfileRecording&);

// Writes a Chrome trace: of this rank alone, or (collective over all ranks) of all, written by rank 0.
// IoError.
void write_trace(const ProfileRecording&, const std::string& path);
void write_trace_of_all(const ProfileRecording&, const std::string& path);

}  // namespace tessera
