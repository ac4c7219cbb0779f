// Watchers of running programs: a profile, the search for NaN. Without a watcher the cost is two tests per
// step.
#pragma once
#include <cstdint>
#include <string>

#include "program/program.hpp"

namespace tessera {

struct StepTime {
  const Program& program;
  const Instruction& instruction;
  double start_s, seconds;      // by the process's steady clock
  std::int64_t crossing_bytes;  // received from other hosts meanwhile
  bool ends = false;            // the second half of a collective that overlapped with other steps
};
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  virtual void step(const StepTime&) = 0;
};
// nullptr: no watcher.
RunWatcher*& run_watcher();
double watch_clock_s();

// Whether results are searched for NaN.
bool& nan_check_on();
std::int64_t count_nans(Dtype, const std::byte* data, std::int64_t elements);

}  // namespace tessera
