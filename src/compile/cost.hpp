// What a program costs: arithmetic, bytes, memory, and a time predicted from an alpha-beta model.
#pragma once
#include <tessera/jit.hpp>

#include "program/program.hpp"

namespace tessera {

// A machine as the model sees it. Kept per user by `tessera bench --calibrate`.
struct MachineModel {
  double latency_s = 1e-6;          // of one message inside a host
  double bytes_per_s = 4e9;         // between two ranks of a host
  double host_latency_s = 2e-5;     // of one message between hosts
  double host_bytes_per_s = 1.2e9;  // between two hosts, all their ranks together
  double flops_per_s = 2e10;        // of one rank's matrix product
  double memory_bytes_per_s = 8e9;
  bool is_measured = false;  // by tessera bench --calibrate
};
MachineModel machine_model();
// Rank 0's model on all ranks, which choose by it. Collective over all ranks.
void share_machine_model();
// Where the calibration is kept, and how it is written.
std::string machine_model_path();
void save_machine_model(const MachineModel&);

CostAnalysis cost_of(const Program&);
double flops_of(const Program&, const Instruction&);  // of one that is no branch or loop
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
