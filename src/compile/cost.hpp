// What a program costs: arithmetic, bytes, memory, and a time predicted from an alpha-beta model.
#pragma once
#include <tessera/jit.hpp>

#include "comm/host/links.hpp"
#include "program/program.hpp"

namespace tessera {

// A machine as the model sees it. Kept per user by `tessera bench --calibrate`.
struct MachineModel : comm::Links {
  bool is_measured = false;  // by tessera bench --calibrate
};
MachineModel machine_model();
// Rank 0's model on all ranks, which choose by it. Collective over all ranks.
void share_machine_model();
// Where the calibration is kept, and how it is written.
std::string machine_model_path();
void save_machine_model(const MachineModel&);

CostAnalysis cost_of(const Program&);
// That an instruction reads and writes: a view is read by the chain, which does not read its sources besides.
std::int64_t accessed_bytes(const Program&, const Instruction&);
double flops_of(const Program&, const Instruction&);  // of one that is no branch or loop
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
