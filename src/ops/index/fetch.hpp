// Reading elements that other ranks hold, by lists that only the reader knows.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "kernels/move/copy.hpp"

namespace tessera {

// The rows that a rank needs: row `position` of the block of rank `owner` of the communicator; zeros where
// the owner is -1.
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

// The other way: row i of rows (outer, entries, inner) goes to row position[i] of the block of rank
// owner[i]; those of owner -1 go nowhere. put(positions, rows) is called once per sender, in the order of
// the ranks, for rows (outer, positions, inner). Collective, with the same three exchanges.
void deliver(const comm::Communicator&, const FetchList&, Dtype, kernels::AxisView rows_view,
             const std::byte* rows,
             const std::function<void(std::span<const std::int64_t>, const std::byte*)>& put);

// Questions of `item` bytes go to their owners, numbers come back, 0 from owner -1. answer(questions, how
// many, numbers) is called once. Collective: the counts, the questions, the answers.
std::vector<std::int64_t> ask(
    const comm::Communicator&, const FetchList&, std::int64_t item, const std::byte* questions,
    const std::function<void(const std::byte*, std::int64_t, std::int64_t*)>& answer);

}  // namespace tessera
