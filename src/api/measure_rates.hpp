// Measurement of this machine's rates (base/rates.hpp) between the ranks of the job.
#pragma once
#include <functional>

#include "base/rates.hpp"

namespace tessera {

enum class Effort { quick, thorough };  // 0.1 s; seconds, for a machine that is busy or uneven

// Seconds on the clock, and of them those in which this thread had a core.
struct Clocked {
  double wall_s, cpu_s;
};
using Clock = std::function<Clocked()>;
Clocked read_clocks();

// Whether a rank had its core all the time. Waiting ranks spin, so time off the core was used by other
// programs; a quarter of the CPU time plus 20 us is allowed for the operating system.
bool had_core(Clocked spent);

struct Measured {
  Rates rates;
  // Another program held a rank's core in each repetition of a measurement, or a rate is implausible
  // (base/rates.hpp): the rates say little about the machine.
  bool is_disturbed;
};

// Measures the rates that the job can measure: arithmetic and memory always, the link inside a host if a
// host has two ranks, the link between hosts if there are two; the others keep the values of `before`. The
// slowest rank counts. The same result on all ranks. Collective over all ranks of the runtime.
Measured measure_rates(const Rates& before, Effort, const Clock& = read_clocks);

// Called at the start of the runtime: distributes rank 0's rates, and measures and stores missing ones,
// unless a host has more ranks than cores (ranks that share a core do not show the machine's rates; they plan
// with their share of them, of_shared_cores). Disturbed rates are neither used nor stored.
void share_rates();

}  // namespace tessera
