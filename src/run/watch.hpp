// Who looks on while programs run: a profile, the search for NaN. Nothing is paid while nobody does but two
// tests per step.
#pragma once
#include <cstdint>
#include <string>

#include "program/program.hpp"

namespace tessera {

struct StepTime {
  const Program& program;
  const Instruction& instruction;
  double start_s, seconds;      // on the process's steady clock
  std::int64_t crossing_bytes;  // that came from other hosts meanwhile
  bool ends = false;            // the second half of a collective that went on beside other steps
};
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  virtual void step(const StepTime&) = 0;
};
// nullptr: nobody.
RunWatcher*& run_watcher();
double watch_clock_s();

// Whether results are searched for NaN.
bool& nan_check_on();
std::int64_t count_nans(Dtype, const std::byte* data, std::int64_t elements);

}  // namespace tessera
