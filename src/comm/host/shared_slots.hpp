// A board in shared memory on which ranks of one host post messages and read each other's: one rendezvous,
// where a collective of the MPI library takes a round of messages per doubling of the ranks. For agreements
// and the smallest collectives.
//
//   rank 0   writes "7", waits for 1, 2, 3    reads all four messages    writes the next, on the other side
//   rank 1   writes "9", waits ...             ...
//
// The slots have two sides, used in turn: a rank that posts on one side has read the other, so once all
// messages of a side are posted, every rank has finished reading the other side.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "comm/mpi/communicator.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {

class SharedSlots {
 public:
  static constexpr std::size_t most_bytes = 1016;  // limit of a notice

  // The communicator's board, or nullptr if its ranks cannot all map one block of memory, or
  // TESSERA_COLLECTIVES is mpi. The first call is collective. Must be called inside a Waiting scope.
  static SharedSlots* of(const Communicator&);

  // Collective. read(rank, notice) for all ranks in the order of comm, whose board this is; their messages
  // have the same size.
  void exchange(const Communicator& comm, const void* mine, std::size_t bytes,
                const std::function<void(int, const std::byte*)>& read);

  SharedSlots(const Communicator&, Buffer memory);

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> rendezvous;
    std::byte bytes[most_bytes];
  };
  Slot& slot(std::uint64_t rendezvous, int rank) const;
  void wait_for(const Communicator&, const Slot&, std::uint64_t rendezvous) const;

  int ranks_;
  Buffer memory_;
  std::uint64_t rendezvous_count_ = 0;
  bool has_a_core_;  // every rank of this host has one to itself
};

}  // namespace tessera::comm
