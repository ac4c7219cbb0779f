#include "comm/host/shared_slots.hpp"

#include <sched.h>
#include <time.h>

#include <cstring>
#include <exception>
#include <memory>

#include <tessera/error.hpp>

#include "base/settings.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace tessera::comm {
namespace {

// Rank 0's block, mapped by all other ranks or by none.
Buffer shared_by(const Communicator& comm, std::size_t bytes) {
  constexpr std::size_t least_shared = std::size_t{64} << 10;  // allocate_on_host shares no smaller blocks
  Buffer memory;
  HostAddress address;
  if (comm.rank() == 0) {
    memory = allocate_on_host(std::max(bytes, least_shared));
    std::memset(memory.data(), 0, bytes);
    address = host_address(memory.data());
  }
  check(mpi::Bcast(&address, sizeof address, MPI_BYTE, 0, comm.impl().handle), "MPI_Bcast", comm);
  int works = address.is_visible() ? 1 : 0, all_work = 0;
  try {
    if (works == 1 && comm.rank() != 0) memory = map(address);
  } catch (const std::exception&) {  // this process can map no more memory
    works = 0;
  }
  check(mpi::Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, comm.impl().handle), "MPI_Allreduce", comm);
  return all_work == 1 ? std::move(memory) : Buffer();
}

void rest_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

SharedSlots::SharedSlots(const Communicator& comm, Buffer memory)
    : ranks_(comm.size()),
      memory_(std::move(memory)),
      has_a_core_(place_in_job().host_size <= place_in_job().cores) {}

SharedSlots* SharedSlots::of(const Communicator& comm) {
  if (settings().collectives != "auto" || comm.size() == 1) return nullptr;
  auto& set = *comm.impl().set;
  // The other ranks still wait for this rank's part: another message would be taken for it.
  if (set.failed_to_share)
    throw CommError("an MPI call failed on this rank before, while the ranks made memory to share");
  if (!set.asked_for_slots) {
    set.asked_for_slots = set.failed_to_share = true;
    const Communicator& own = ascending(comm);
    if (share_memory(own.device_ids())) {
      Buffer memory = shared_by(own, 2 * sizeof(Slot) * static_cast<std::size_t>(own.size()));
      if (memory.data() != nullptr) set.board = std::make_shared<SharedSlots>(own, std::move(memory));
    }
    set.failed_to_share = false;
  }
  return set.board.get();
}

SharedSlots::Slot& SharedSlots::slot(std::uint64_t rendezvous, int rank) const {
  const auto place = rendezvous % 2 * static_cast<std::uint64_t>(ranks_) + static_cast<std::uint64_t>(rank);
  return reinterpret_cast<Slot*>(memory_.data())[place];
}

// Polls MPI now and then, since another rank may wait for a message that this rank has begun to send. A rank
// with a core of its own spins without yielding for a while: yielding lets the system put two ranks on one
// core (2 ranks, 2 cores: 16 to 37 us a call instead of 5). Who waits for another rank's file sleeps between
// two looks: threads that read, write or compute have the core.
void SharedSlots::wait_for(const Communicator& comm, const Slot& other, std::uint64_t rendezvous) const {
  constexpr int quick = 10'000, long_since = 2 * quick;
  constexpr timespec nap{0, 50'000};
  const int turns_between_progress = has_a_core_ ? 1000 : 16;
  for (int turn = 1; other.rendezvous.load(std::memory_order_acquire) < rendezvous; ++turn) {
    int found = 0;
    if (turn % turns_between_progress == 0 || turn > long_since)
      check(mpi::Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm.impl().handle, &found, MPI_STATUS_IGNORE),
            "MPI_Iprobe", comm);
    if (has_a_core_ && turn < quick)
      rest_a_moment();
    else if (turn < long_since)
      sched_yield();
    else
      nanosleep(&nap, nullptr);
  }
}

void SharedSlots::exchange(const Communicator& comm, const void* mine, std::size_t bytes,
                           const std::function<void(int, const std::byte*)>& read) {
  const auto& impl = comm.impl();
  const std::uint64_t rendezvous = ++rendezvous_count_;
  Slot& own = slot(rendezvous, impl.mpi_rank(comm.rank()));
  if (bytes > 0) std::memcpy(own.bytes, mine, bytes);
  own.rendezvous.store(rendezvous, std::memory_order_release);
  for (int r = 0; r < ranks_; ++r) wait_for(comm, slot(rendezvous, r), rendezvous);
  for (int r = 0; r < ranks_; ++r) read(r, slot(rendezvous, impl.mpi_rank(r)).bytes);
}

}  // namespace tessera::comm
