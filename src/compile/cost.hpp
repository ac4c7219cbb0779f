// The cost of a program: arithmetic, bytes, memory, and a time predicted from the rates of the machine.
#pragma once
#include <tessera/jit.hpp>

#include "base/rates.hpp"
#include "program/program.hpp"

namespace tessera {

CostAnalysis cost_of(const Program&);
// Bytes that an instruction reads and writes: a chain reads its views but not their sources.
std::int64_t accessed_bytes(const Program&, const Instruction&);
double flops_of(const Program&, const Instruction&);  // for instructions other than branches and loops
// Seconds of an instruction's arithmetic, and of its accesses to memory besides.
double arithmetic_seconds(const Program&, const Instruction&, const Rates&);
double local_seconds(const Program&, const Instruction&, const Rates&);
double local_seconds(const Program&, const Rates&);  // of all instructions, one after the other
// The part of an instruction's traffic that crosses between hosts, on the rank that receives most of it.
// 0 for a job on one host, and for meshes without processes, whose hosts are unknown. Exact for gathers,
// reductions and exchanges. For a kernel that communicates by itself: estimated by the fraction of its peers
// on other hosts.
std::int64_t crossing_bytes(const Program&, const Instruction&, const CommunicationCost&);
MemoryAnalysis memory_of(const Program&);
Explanation explanation_of(const Program&);

}  // namespace tessera
