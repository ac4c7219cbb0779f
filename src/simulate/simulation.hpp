// The answer of simulate: sums, texts, the picture.
#pragma once
#include <tessera/jit/simulate.hpp>

#include "simulate/plan_steps.hpp"

namespace tessera {

// Simulates a program by the session's rates.
Simulation simulation_of_program(const Program&, const SimulateOptions&);

// Simulates HPL, the benchmark, for n unknowns on rows x columns ranks.
Simulation simulation_of_hpl(std::int64_t n, int rows, int columns, const SimulateOptions&);

// A Chrome trace of the spans: a process per rank, with a track for computing and one for waiting. IoError.
void write_timeline(const PlannedTimeline&, const TimelineResult&, const Rates&, const std::string& path);

}  // namespace tessera
