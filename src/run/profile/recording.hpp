// Times of a rank's steps, kept as they run, and the report over all ranks' recordings.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "run/watch.hpp"

namespace tessera {

// The sum over all calls of one step of a program: "matmul at train.cpp:12".
struct StepSum {
  std::string kind;  // "compute", or that of a collective
  std::int64_t calls = 0, bytes = 0, crossing_bytes = 0;
  double seconds = 0, flops = 0, accessed_bytes = 0;
};

struct PeakMemory {
  std::int64_t bytes = 0;       // of all that this rank held at once
  std::int64_t step_bytes = 0;  // of those, operands and results of the step that ran
  std::string step;
};

class Recording final : public RunWatcher {
 public:
  struct Event {
    std::string name, category, site;
    double start_s, seconds;
    std::int64_t bytes, crossing_bytes;
    bool ends;  // the second half of a collective
  };

  Recording();  // begins: looks on from here
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

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

// One rank's, in the form in which ranks exchange it.
std::string recording_text(const Recording&);
// The table over all ranks, from their texts and their hosts' names. Pure.
struct Rates;
std::string report_text(const std::vector<std::string>& recordings, const std::vector<std::string>& hosts,
                        const Rates&);
// Collective over all ranks, which all get it.
std::string report_of_all(const Recording&);

// A Chrome trace. This rank's alone, or, collective over all ranks, everybody's: rank 0 writes. IoError.
void write_trace(const Recording&, const std::string& path);
void write_trace_of_all(const Recording&, const std::string& path);

}  // namespace tessera
