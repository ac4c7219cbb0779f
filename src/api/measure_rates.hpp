// Measurement of this machine's rates (base/rates.hpp) between the ranks of the job.
#pragma once
#include "base/rates.hpp"

namespace tessera {

enum class Effort { quick, thorough };  // a tenth of a second; seconds, for a machine that is busy or uneven

// What the job can tell: arithmetic and memory always, the link inside a host with two ranks there, the link
// between hosts with two hosts; the others stay as in `before`. The slowest rank counts. The same on all
// ranks. Collective over all ranks of the runtime.
Rates measure_rates(const Rates& before, Effort);

// At the start of the runtime: rank 0's rates on all ranks, and what they lack measured and kept, where no
// host has more ranks than cores (rates of ranks that share a core are no rates of the machine).
void share_rates();

}  // namespace tessera
