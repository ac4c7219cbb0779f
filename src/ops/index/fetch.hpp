// Reading elements that other ranks hold, by lists that only the reader knows.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "kernels/move/copy.hpp"

namespace tessera {

// What a rank wants: row `position` of the block of rank `owner` of the communicator; zeros where the owner
// is -1.
struct FetchList {
  std::vector<int> owner;
  std::vector<std::int64_t> position;
  void add(int from, std::int64_t at) {
    owner.push_back(from);
    position.push_back(at);
  }
};

// out (outer, wanted, inner)[o, i, :] = block of owner[i] (outer, extent, inner)[o, position[i], :]. Blocks
// differ in extent only. Collective: the counts, the positions, then the rows, each rank receiving exactly
// the rows that it wants from others.
void fetch(const comm::Communicator&, const FetchList&, Dtype, kernels::AxisView own_block,
           const std::byte* x, std::byte* out);

}  // namespace tessera
