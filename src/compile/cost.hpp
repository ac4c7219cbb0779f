// The cost of a program: arithmetic, bytes, memory, and a time predicted from the rates of the machine.
#pragma once
#include <tessera/jit.hpp>

#include "base/rates.hpp"
#include "program/program.hpp"

namespace tessera {

CostAnalysis cost_of(const Program&);
// Bytes that an instruction reads and writes: a chain reads its views but not their sources.
std::int64_t accessed_bytes(const Program&, const Instruction&);
double flops_of(const Program&, const Instruction&);     // for instructions other than branches and loops
double memory_seconds_of(const Program&, const Rates&);  // of all accesses, one instruction after the other
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
