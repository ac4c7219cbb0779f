// The answer of simulate: sums, texts, the picture.
#pragma once
#include <tessera/jit/simulate.hpp>

#include "simulate/plan_steps.hpp"

namespace tessera {

// Simulates a program by the session's rates.
Simulation simulation_of_program(const Program&, const SimulateOptions&);

// A Chrome trace of the spans: a process per rank, with a track for computing and one for waiting. IoError.
void write_timeline(const PlannedTimeline&, const TimelineResult&, const Rates&, const std::string& path);

}  // namespace tessera
