// A board in shared memory on which ranks of one host put up notices and read each other's: one meeting,
// where a collective of the MPI library takes a round of messages per doubling of the ranks. For agreements
// and the smallest collectives.
//
//   rank 0   puts up "7", waits for 1, 2, 3    reads all four notices    puts up the next, on the other side
//   rank 1   puts up "9", waits ...             ...
//
// The board has two sides, used in turn: who puts up a notice on one has read the other, and so has everybody
// whose notice stands beside it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "comm/mpi/communicator.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {

class NoticeBoard {
 public:
  static constexpr std::size_t most_bytes = 1016;  // of a notice

  // The communicator's, or nullptr where its ranks cannot all see one memory, or have been told to use the
  // MPI library (TESSERA_COLLECTIVES=mpi). The first call is collective. Stands inside a Waiting scope.
  static NoticeBoard* of(const Communicator&);

  // Collective. read(rank, notice) for all ranks in order, whose notices have the same size.
  void meet(const void* mine, std::size_t bytes, const std::function<void(int, const std::byte*)>& read);

  NoticeBoard(const Communicator&, Buffer memory);

 private:
  struct alignas(64) Notice {
    std::atomic<std::uint64_t> meeting;
    std::byte bytes[most_bytes];
  };
  Notice& notice(std::uint64_t meeting, int rank) const;
  void wait_for(const Notice&, std::uint64_t meeting) const;

  const Communicator& comm_;
  Buffer memory_;
  std::uint64_t meetings_ = 0;
  bool has_a_core_;  // each rank of this host
};

}  // namespace tessera::comm
