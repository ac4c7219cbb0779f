// The public collectives: each picks between the MPI library's algorithm and the own one of
// own_collectives.cpp.
#include "comm/collectives/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/settings.hpp"
#include "comm/collectives/combine.hpp"
#include "comm/collectives/own_collectives.hpp"
#include "comm/collectives/pending.hpp"
#include "comm/collectives/two_level.hpp"
#include "comm/host/shared_slots.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_types.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, bytes);
}

// Starts the collective and waits for it at once, inside the caller's Waiting scope.
template <class Start>
void run_by_hosts(const Communicator& comm, const char* what, std::int64_t bytes, Start start) {
  Pending::Impl pending(comm, what, bytes);
  start(pending);
  pending.move_on(true);
}

const std::byte* bytes_at(const void* place) { return static_cast<const std::byte*>(place); }
std::byte* bytes_at(void* place) { return static_cast<std::byte*>(place); }

// The board on which ranks of one host exchange small data without messages; null if the data are too large.
SharedSlots* slots_for(const Communicator& comm, std::int64_t bytes) {
  constexpr std::int64_t most_read = std::int64_t{16} << 10;
  const bool is_small =
      bytes <= static_cast<std::int64_t>(SharedSlots::most_bytes) && bytes * comm.size() <= most_read;
  return is_small ? SharedSlots::of(comm) : nullptr;
}

bool fits_one_message(std::int64_t count) { return count <= settings().message_limit; }

}  // namespace

void all_reduce(const Communicator& comm, ReduceKind kind, Dtype dtype, const void* in, void* out,
                std::int64_t count) {
  require_reducible(kind, dtype);
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  if (comm.size() == 1) return copy_bytes(out, in, count * item);
  check_collective(comm, "all-reduce", {static_cast<std::int64_t>(kind), dtype.code, count});
  const Waiting waiting("all-reduce", comm, count * item);
  if (count > 0 && goes_by_hosts(comm))
    return run_by_hosts(comm, "all-reduce", count * item, [&](Pending::Impl& pending) {
      start_all_reduce_by_hosts(pending, kind, dtype, bytes_at(in), bytes_at(out), count);
    });
  if (auto* board = slots_for(comm, count * item))
    return board->exchange(comm, in, static_cast<std::size_t>(count * item),
                           [&](int rank, const std::byte* theirs) {
                             if (rank == 0)
                               copy_bytes(out, theirs, count * item);
                             else
                               combine(kind, dtype, out, theirs, out, count);
                           });
  if (use_own(Collective::all_reduce, comm.size(), count * item))
    return own_all_reduce(comm, kind, dtype, in, out, count);
  const std::int64_t most = settings().message_limit;
  for (std::int64_t done = 0; done < count; done += most) {
    const int n = static_cast<int>(std::min(most, count - done));
    auto* to = static_cast<std::byte*>(out) + done * item;
    const void* from = in == out ? MPI_IN_PLACE : static_cast<const std::byte*>(in) + done * item;
    check(mpi::Allreduce(from, to, n, mpi_type(dtype), mpi_op(kind, dtype), comm.impl().handle),
          "MPI_Allreduce", comm);
  }
}

namespace {
void gather_blocks(const Communicator& comm, const void* in, std::int64_t bytes, void* out,
                   std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  if (!goes_by_hosts(comm)) return own_all_gather_v(comm, in, bytes, out, bytes_of, offset_of);
  copy_bytes(bytes_at(out) + offset_of[comm.rank()], in, bytes);
  run_by_hosts(comm, "all-gather", bytes, [&](Pending::Impl& pending) {
    start_gather_by_hosts(pending, bytes_at(out), bytes_of, offset_of);
  });
}
}  // namespace

void all_gather(const Communicator& comm, const void* in, std::int64_t bytes, void* out) {
  auto* own_place = static_cast<std::byte*>(out) + bytes * comm.rank();
  if (comm.size() == 1) return copy_bytes(out, in, bytes);
  check_collective(comm, "all-gather", {bytes});
  const Waiting waiting("all-gather", comm, bytes);
  if (auto* board = slots_for(comm, bytes))
    return board->exchange(comm, in, static_cast<std::size_t>(bytes), [&](int rank, const std::byte* theirs) {
      copy_bytes(bytes_at(out) + bytes * rank, theirs, bytes);
    });
  // The MPI library places the blocks in the order of its own ranks.
  if (!goes_by_hosts(comm) && fits_one_message(bytes) && !comm.impl().is_reordered() &&
      !use_own(Collective::all_gather, comm.size(), bytes)) {
    const int n = static_cast<int>(bytes);
    check(mpi::Allgather(in == own_place ? MPI_IN_PLACE : in, n, MPI_BYTE, out, n, MPI_BYTE,
                         comm.impl().handle),
          "MPI_Allgather", comm);
    return;
  }
  std::vector<std::int64_t> bytes_of(comm.size(), bytes), offset_of(bytes_of.size());
  std::exclusive_scan(bytes_of.begin(), bytes_of.end(), offset_of.begin(), std::int64_t{0});
  gather_blocks(comm, in, bytes, out, bytes_of, offset_of);
}

void all_gather_v(const Communicator& comm, const void* in, std::int64_t bytes, void* out,
                  std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  if (comm.size() == 1) return copy_bytes(static_cast<std::byte*>(out) + offset_of[0], in, bytes);
  check_collective(comm, "all-gather of unequal blocks", {offset_of.back() + bytes_of.back()});
  const Waiting waiting("all-gather", comm, bytes);
  gather_blocks(comm, in, bytes, out, bytes_of, offset_of);
}

void reduce_scatter(const Communicator& comm, ReduceKind kind, Dtype dtype, const void* in, void* out,
                    std::span<const std::int64_t> counts) {
  require_reducible(kind, dtype);
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (comm.size() == 1) return copy_bytes(out, in, counts[0] * item);
  check_collective(comm, "reduce-scatter", {static_cast<std::int64_t>(kind), dtype.code, total});
  const Waiting waiting("reduce-scatter", comm, total * item);
  if (goes_by_hosts(comm))
    return run_by_hosts(comm, "reduce-scatter", total * item, [&](Pending::Impl& pending) {
      start_reduce_scatter_by_hosts(pending, kind, dtype, bytes_at(in), bytes_at(out), counts);
    });
  if (!fits_one_message(total) || comm.impl().is_reordered() ||
      use_own(Collective::reduce_scatter, comm.size(), total * item))
    return own_reduce_scatter(comm, kind, dtype, in, out, counts);
  std::vector<int> int_counts(counts.begin(), counts.end());
  check(mpi::Reduce_scatter(in, out, int_counts.data(), mpi_type(dtype), mpi_op(kind, dtype),
                            comm.impl().handle),
        "MPI_Reduce_scatter", comm);
}

void broadcast(const Communicator& comm, void* data, std::int64_t bytes, int root) {
  if (comm.size() == 1 || bytes == 0) return;
  check_collective(comm, "broadcast", {bytes, root});
  const Waiting waiting("broadcast", comm, bytes);
  count_broadcast(comm, bytes, root);
  const std::int64_t most = settings().message_limit;
  for (std::int64_t done = 0; done < bytes; done += most)
    check(mpi::Bcast(static_cast<std::byte*>(data) + done, static_cast<int>(std::min(most, bytes - done)),
                     MPI_BYTE, comm.impl().mpi_rank(root), comm.impl().handle),
          "MPI_Bcast", comm);
}

void barrier(const Communicator& comm) {
  if (comm.size() == 1) return;
  check_collective(comm, "barrier", {});
  const Waiting waiting("barrier", comm, 0);
  if (auto* board = SharedSlots::of(comm))
    return board->exchange(comm, nullptr, 0, [](int, const std::byte*) {});
  check(mpi::Barrier(comm.impl().handle), "MPI_Barrier", comm);
}

void exchange(const Communicator& comm, std::span<const Message> sends, std::span<const Message> receives,
              const std::function<void(std::size_t)>& arrived, const char* label) {
  start_exchange(comm, sends, receives, arrived, label).wait();
}

}  // namespace tessera::comm
