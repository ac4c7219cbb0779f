// The stop of a job, once all ranks know of it.
#pragma once
#include <vector>

namespace tessera {

// Before an evaluation, after its agreement: calls what on_preemption registered, once, and throws Preempted.
// Only where all ranks of the job are there.
void stop_if_asked(const std::vector<int>& participants);
// Whether the program has registered something: then every evaluation must hear of signals.
bool waits_for_stop();

}  // namespace tessera
