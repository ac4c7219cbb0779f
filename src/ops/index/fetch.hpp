// Reading elements of other ranks by lists that only the reading rank has.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "kernels/move/copy.hpp"

namespace tessera {

// The rows that a rank needs: row `position` of the block of rank `owner` of the communicator; zeros if the
// owner is -1.
struct FetchList {
  std::vector<int> owner;
  std::vector<std::int64_t> position;
  void add(int from, std::int64_t at) {
    owner.push_back(from);
    position.push_back(at);
  }
};

// out (outer, wanted, inner)[o, i, :] = block of owner[i] (outer, extent, inner)[o, position[i], :]. Blocks
// differ in extent only. Collective: exchanges the counts, the positions, then the rows; each rank receives
// exactly the rows that it requests from others.
void fetch(const comm::Communicator&, const FetchList&, Dtype, kernels::AxisView own_block,
           const std::byte* x, std::byte* out);

// The reverse: row i of rows (outer, entries, inner) is sent to row position[i] of the block of rank
// owner[i]; those of owner -1 are dropped. put(positions, rows) is called once per sender, in rank order, for
// rows (outer, positions, inner). Collective, with the same three exchanges.
void deliver(const comm::Communicator&, const FetchList&, Dtype, kernels::AxisView rows_view,
             const std::byte* rows,
             const std::function<void(std::span<const std::int64_t>, const std::byte*)>& put);

// Sends questions of `item` bytes to their owners and returns one number each, 0 for owner -1.
// answer(questions, how many, numbers) is called once. Collective: the counts, the questions, the answers.
std::vector<std::int64_t> ask(
    const comm::Communicator&, const FetchList&, std::int64_t item, const std::byte* questions,
    const std::function<void(const std::byte*, std::int64_t, std::int64_t*)>& answer);

}  // namespace tessera
