// Exclusive scans over the ranks of a communicator.
#pragma once
#include <cstddef>
#include <functional>

#include "comm/mpi/communicator.hpp"

namespace tessera {

// On return `before` holds mine[0] op mine[1] op ... op mine[rank - 1]; on the first rank it is unchanged
// (returns false). `mine` is overwritten. combine(in, inout): inout = in op inout, with in from lower ranks.
// With `reverse` the ranks count from the last. log2(ranks) messages of `bytes` each.
bool exclusive_scan(const comm::Communicator&, bool reverse, std::byte* mine, std::byte* before,
                    std::size_t bytes,
                    const std::function<void(const std::byte* in, std::byte* inout)>& combine);
std::int64_t scan_steps(std::int64_t ranks);

}  // namespace tessera
