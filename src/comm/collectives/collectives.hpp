// Blocking collectives on memory. Every rank of the communicator calls them with matching arguments, in the
// same order.
//
// Counts and bytes are 64-bit; data beyond TESSERA_MESSAGE_LIMIT travel in several messages. Results of
// reductions have the same bits on every rank, and in every run with the same number of ranks. Errors of MPI
// are raised as CommErrors.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "comm/collectives/combine.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// in == out is allowed.
void all_reduce(const Communicator&, ReduceKind, Dtype, const void* in, void* out, std::int64_t count);

// out receives the ranks' blocks in rank order; `in` may be this rank's own block within out.
void all_gather(const Communicator&, const void* in, std::int64_t bytes, void* out);
// Blocks of any size at any offset of out: rank r's block has bytes_of[r] bytes at offset_of[r].
void all_gather_v(const Communicator&, const void* in, std::int64_t bytes, void* out,
                  std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of);

// `in` has counts[0] + counts[1] + ... elements; rank r receives the reduction of the r-th block. `out` must
// not overlap `in`.
void reduce_scatter(const Communicator&, ReduceKind, Dtype, const void* in, void* out,
                    std::span<const std::int64_t> counts);

void broadcast(const Communicator&, void* data, std::int64_t bytes, int root);
void barrier(const Communicator&);

struct Message {
  int peer = 0;  // device id
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

// Any pattern of messages: posts all receives, then the sends, and calls arrived(i) as soon as receives[i] is
// complete, so that unpacking overlaps with the remaining traffic. Returns when the sends are complete too.
// Messages between a pair of ranks match in order. A rank does not send to itself. Collective over the ranks
// that send or receive; the others need not call.
void exchange(const Communicator&, std::span<const Message> sends, std::span<const Message> receives,
              const std::function<void(std::size_t)>& arrived, const char* label);

}  // namespace tessera::comm
