#include "comm/collectives/own_collectives.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "base/settings.hpp"
#include "base/thresholds.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {
namespace {

// Reductions travel in pieces small enough to stay in the cache between arrival and addition.
constexpr std::int64_t piece_bytes = std::int64_t{256} << 10;

// n elements scattered evenly over the ranks: the first element of each block, and the end.
std::vector<std::int64_t> even_starts(std::int64_t n, int ranks) {
  std::vector<std::int64_t> starts;
  for (int r = 0; r <= ranks; ++r) starts.push_back(n / ranks * r + std::min<std::int64_t>(r, n % ranks));
  return starts;
}

// Receives blocks of `count` elements in pieces and adds each to `sum` on arrival. Two scratch pieces
// alternate: one is added while the next one travels.
class AddingReceiver {
 public:
  AddingReceiver(const Communicator& comm, ReduceKind kind, Dtype dtype)
      : comm_(comm), kind_(kind), dtype_(dtype), item_(static_cast<std::int64_t>(itemsize(dtype))) {}

  void send(const std::byte* block, std::int64_t count, int to, Requests& sends) const {
    const std::int64_t piece = piece_elements(to);
    for (std::int64_t at = 0; at < count; at += piece)
      sends.send(block + at * item_, std::min(piece, count - at) * item_, to, tag_collective);
  }

  // sum = first (op) the received elements
  void receive(const std::byte* first, std::byte* sum, std::int64_t count, int from) {
    Requests open(comm_);
    auto& requests = open.list();
    requests.assign(2, MPI_REQUEST_NULL);
    const std::int64_t most = piece_elements(from), pieces = (count + most - 1) / most;
    for (auto& scratch : scratch_)
      if (scratch.bytes() < static_cast<std::size_t>(most * item_)) scratch = Buffer::allocate(most * item_);
    count_from(comm_, from, count * item_);
    const auto length = [&](std::int64_t piece) { return std::min(most, count - piece * most); };
    const auto post = [&](std::int64_t piece) {
      const auto slot = static_cast<std::size_t>(piece % 2);
      check(mpi::Irecv(scratch_[slot].data(), static_cast<int>(length(piece) * item_), MPI_BYTE,
                       comm_.impl().mpi_rank(from), tag_collective, comm_.impl().handle, &requests[slot]),
            "MPI_Irecv", comm_);
    };
    if (pieces > 0) post(0);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      if (piece + 1 < pieces) post(piece + 1);
      const auto slot = static_cast<std::size_t>(piece % 2);
      check(mpi::Wait(&requests[slot], MPI_STATUS_IGNORE), "MPI_Wait", comm_);
      const std::int64_t offset = piece * most * item_;
      combine(kind_, dtype_, first + offset, scratch_[slot].data(), sum + offset, length(piece));
    }
  }

 private:
  std::int64_t piece_elements(int peer) const {  // a piece is one message
    return std::max<std::int64_t>(1,
                                  std::min(message_limit(comm_, peer), threshold(piece_bytes, 64)) / item_);
  }

  const Communicator& comm_;
  ReduceKind kind_;
  Dtype dtype_;
  std::int64_t item_;
  std::array<Buffer, 2> scratch_;
};

// Every rank sends block i of its value to rank i, in P - 1 steps in which each rank sends to one and
// receives from another. The order of the additions depends on the rank count alone, so that results repeat.
//
//   step 1 of 4:   0 -> 1 -> 2 -> 3 -> 0      step 2:   0 <-> 2, 1 <-> 3      step 3:   0 -> 3 -> 2 -> 1 -> 0
void pairwise_reduce(const Communicator& comm, ReduceKind kind, Dtype dtype, const std::byte* in,
                     std::span<const std::int64_t> starts, std::byte* own_block) {
  const int ranks = comm.size(), me = comm.rank();
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const auto block = [&](int r) { return in + starts[r] * item; };
  const auto count = [&](int r) { return starts[r + 1] - starts[r]; };
  AddingReceiver receiver(comm, kind, dtype);
  for (int step = 1; step < ranks; ++step) {
    const int to = (me + step) % ranks, from = (me - step + ranks) % ranks;
    Requests sends(comm);
    receiver.send(block(to), count(to), to, sends);
    receiver.receive(step == 1 ? block(me) : own_block, own_block, count(me), from);
    sends.wait_all();
  }
}

// P - 1 steps as above, in which each rank sends only its own block; no block is forwarded.
void spread_blocks(const Communicator& comm, const std::byte* own_block, std::byte* out,
                   std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  const int ranks = comm.size(), me = comm.rank();
  for (int step = 1; step < ranks; ++step) {
    const int from = (me - step + ranks) % ranks;
    const auto i = static_cast<std::size_t>(from);
    Requests requests(comm);
    requests.receive(out + offset_of[i], bytes_of[i], from, tag_collective);
    requests.send(own_block, bytes_of[me], (me + step) % ranks, tag_collective);
    requests.wait_all();
  }
}

void bytes_between(std::span<const std::int64_t> starts, std::int64_t item,
                   std::vector<std::int64_t>& bytes_of, std::vector<std::int64_t>& offset_of) {
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    offset_of.push_back(starts[r] * item);
    bytes_of.push_back((starts[r + 1] - starts[r]) * item);
  }
}

}  // namespace

// Chosen by measurement (apps/bench/collectives.cpp; Open MPI 4.1.4, one node, 2 to 8 ranks). The own
// algorithm wins against Open MPI's reduce-scatter by 1.2 to 7 times from 16 KiB a block on, against its
// all-reduce by 5 to 35 % from 64 KiB a block on, and against its all-gather if the rank count is no power of
// two.
bool use_own(Collective collective, int ranks, std::int64_t bytes) {
  if (settings().collectives != "auto") return settings().collectives == "own";
  const std::int64_t block = bytes / ranks;
  switch (collective) {
    case Collective::reduce_scatter: return block >= 32 << 10;
    case Collective::all_reduce: return block >= 64 << 10 && ranks <= 64;
    case Collective::all_gather:
      return bytes >= 16 << 10 && !std::has_single_bit(static_cast<unsigned>(ranks)) && ranks <= 16;
  }
  return false;
}

void own_reduce_scatter(const Communicator& comm, ReduceKind kind, Dtype dtype, const void* in, void* out,
                        std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> starts(counts.size() + 1);
  std::inclusive_scan(counts.begin(), counts.end(), starts.begin() + 1);
  pairwise_reduce(comm, kind, dtype, static_cast<const std::byte*>(in), starts, static_cast<std::byte*>(out));
}

void own_all_reduce(const Communicator& comm, ReduceKind kind, Dtype dtype, const void* in, void* out,
                    std::int64_t count) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const auto starts = even_starts(count, comm.size());
  auto* result = static_cast<std::byte*>(out);
  std::byte* own_block = result + starts[comm.rank()] * item;
  pairwise_reduce(comm, kind, dtype, static_cast<const std::byte*>(in), starts, own_block);
  std::vector<std::int64_t> bytes_of, offset_of;
  bytes_between(starts, item, bytes_of, offset_of);
  spread_blocks(comm, own_block, result, bytes_of, offset_of);
}

// First round: this rank receives its own block from every other rank. Second round: it adds them in
// pairwise_reduce's order and sends the sum to all others.
void start_own_all_reduce(Pending::Impl& pending, ReduceKind kind, Dtype dtype, const void* in, void* out,
                          std::int64_t count) {
  const int ranks = pending.requests.comm().size(), me = pending.requests.comm().rank();
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const auto starts = even_starts(count, ranks);
  const auto own = static_cast<std::size_t>(me);
  const std::int64_t own_count = starts[own + 1] - starts[own], own_bytes = own_count * item;
  std::vector<std::int64_t> bytes_of, offset_of;
  bytes_between(starts, item, bytes_of, offset_of);
  const auto* mine = static_cast<const std::byte*>(in);
  auto* result = static_cast<std::byte*>(out);
  const Buffer arriving = Buffer::allocate(own_bytes * (ranks - 1));
  for (int step = 1; step < ranks; ++step)
    pending.requests.receive(arriving.data() + (step - 1) * own_bytes, own_bytes, (me - step + ranks) % ranks,
                             tag_collective);
  for (int step = 1; step < ranks; ++step) {
    const auto to = static_cast<std::size_t>((me + step) % ranks);
    pending.requests.send(mine + offset_of[to], bytes_of[to], static_cast<int>(to), tag_collective);
  }
  int& second_rounds = pending.requests.comm().impl().set->second_rounds;
  const int tag = tag_second_round + second_rounds++ % second_round_tags;
  pending.next_round = [=, &pending] {
    std::byte* sum = result + offset_of[own];
    for (int step = 1; step < ranks; ++step)
      combine(kind, dtype, step == 1 ? mine + offset_of[own] : sum, arriving.data() + (step - 1) * own_bytes,
              sum, own_count);
    for (int step = 1; step < ranks; ++step) {
      const auto from = static_cast<std::size_t>((me - step + ranks) % ranks);
      pending.requests.receive(result + offset_of[from], bytes_of[from], static_cast<int>(from), tag);
    }
    for (int step = 1; step < ranks; ++step) pending.requests.send(sum, own_bytes, (me + step) % ranks, tag);
  };
}

void own_all_gather_v(const Communicator& comm, const void* in, std::int64_t bytes, void* out,
                      std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  auto* result = static_cast<std::byte*>(out);
  std::byte* own_place = result + offset_of[comm.rank()];
  if (bytes > 0 && own_place != in) std::memmove(own_place, in, bytes);
  spread_blocks(comm, own_place, result, bytes_of, offset_of);
}

}  // namespace tessera::comm
