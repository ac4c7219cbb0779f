// What a program costs: arithmetic, bytes, memory, and a time predicted from the rates of the machine.
#pragma once
#include <tessera/jit.hpp>

#include "program/program.hpp"

namespace tessera {

CostAnalysis cost_of(const Program&);
// That an instruction reads and writes: a view is read by the chain, which does not read its sources besides.
std::int64_t accessed_bytes(const Program&, const Instruction&);
double flops_of(const Program&, const Instruction&);  // of one that is no branch or loop
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
