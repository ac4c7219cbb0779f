// The part of an instruction's traffic that crosses between hosts, on the rank that receives the most of it.
// Known where hosts are known: 0 for a job on one host, and for meshes without processes.
#pragma once
#include <cstdint>

#include "program/program.hpp"

namespace tessera {

// Exact for gathers, reductions and exchanges. A kernel that talks itself: its peers' share of other hosts.
std::int64_t crossing_bytes(const Program&, const Instruction&, const TalkCost&);

}  // namespace tessera
