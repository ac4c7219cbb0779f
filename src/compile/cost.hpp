// The cost of a program: arithmetic, bytes, memory, and a time predicted from the rates of the machine.
#pragma once
#include <tessera/jit.hpp>

#include "program/program.hpp"

namespace tessera {

CostAnalysis cost_of(const Program&);
// Bytes that an instruction reads and writes: a chain reads its views but not their sources.
std::int64_t accessed_bytes(const Program&, const Instruction&);
double flops_of(const Program&, const Instruction&);  // for instructions other than branches and loops
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
