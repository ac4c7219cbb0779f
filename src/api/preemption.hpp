// Stops the job once all ranks know of the request.
#pragma once
#include <vector>

namespace tessera {

// Called before an evaluation, after its agreement: calls the function registered by on_preemption, once, and
// throws Preempted. Only if all ranks of the job participate.
void stop_if_asked(const std::vector<int>& participants);
// Whether the program has registered a function: then every evaluation must learn of signals.
bool waits_for_stop();
// Ends an answered request, so that a notebook continues after a cell was interrupted. To be called on every
// rank between the same two agreements.
void forget_preemption();

}  // namespace tessera
