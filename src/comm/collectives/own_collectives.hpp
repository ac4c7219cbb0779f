// Collectives built on point-to-point messages: for sizes at which the MPI library chooses a slow algorithm,
// and for data that exceed its int counts. For collectives.cpp only.
#pragma once
#include <span>

#include "comm/collectives/combine.hpp"
#include "comm/collectives/pending_impl.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

enum class Collective { all_reduce, all_gather, reduce_scatter };

// Whether the own algorithm is faster. `bytes`: the reduced value, or one rank's block for all_gather.
bool use_own(Collective, int ranks, std::int64_t bytes);

void own_all_reduce(const Communicator&, ReduceKind, Dtype, const void* in, void* out, std::int64_t count);
// The same bits as from own_all_reduce, by two rounds of non-blocking messages.
void start_own_all_reduce(Pending::Impl&, ReduceKind, Dtype, const void* in, void* out, std::int64_t count);
void own_reduce_scatter(const Communicator&, ReduceKind, Dtype, const void* in, void* out,
                        std::span<const std::int64_t> counts);
void own_all_gather_v(const Communicator&, const void* in, std::int64_t bytes, void* out,
                      std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of);

}  // namespace tessera::comm
