// The part of an instruction's traffic that crosses between hosts, on the rank that receives most of it. 0
// for a job on one host, and for meshes without processes, whose hosts are unknown.
#pragma once
#include <cstdint>

#include "program/program.hpp"

namespace tessera {

// Exact for gathers, reductions and exchanges. For a kernel that communicates by itself: estimated by the
// fraction of its peers on other hosts.
std::int64_t crossing_bytes(const Program&, const Instruction&, const CommunicationCost&);

}  // namespace tessera
