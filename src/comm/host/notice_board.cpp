#include "comm/host/notice_board.hpp"

#include <sched.h>

#include <cstring>
#include <exception>
#include <memory>

#include "base/settings.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/mpi_call.hpp"

namespace tessera::comm {
namespace {

// Rank 0's block, mapped by the others: all of them or none.
Buffer shared_by(const Communicator& comm, std::size_t bytes) {
  constexpr std::size_t least_shared = std::size_t{64} << 10;  // smaller blocks are a rank's own
  Buffer memory;
  HostAddress address;
  if (comm.rank() == 0) {
    memory = allocate_on_host(std::max(bytes, least_shared));
    std::memset(memory.data(), 0, bytes);
    address = host_address(memory.data());
  }
  check(MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, comm.impl().handle), "MPI_Bcast", comm);
  int works = address.is_visible() ? 1 : 0, all_work = 0;
  try {
    if (works == 1 && comm.rank() != 0) memory = map(address);
  } catch (const std::exception&) {  // no room for one more mapping
    works = 0;
  }
  check(MPI_Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, comm.impl().handle), "MPI_Allreduce", comm);
  return all_work == 1 ? std::move(memory) : Buffer();
}

void rest_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

NoticeBoard::NoticeBoard(const Communicator& comm, Buffer memory)
    : comm_(comm),
      memory_(std::move(memory)),
      has_a_core_(place_in_job().host_size <= place_in_job().cores) {}

NoticeBoard* NoticeBoard::of(const Communicator& comm) {
  auto& impl = comm.impl();
  if (settings().collectives != "auto") return nullptr;
  if (!impl.asked_for_board) {
    impl.asked_for_board = true;
    if (comm.size() > 1 && share_memory(comm.device_ids())) {
      Buffer memory = shared_by(comm, 2 * sizeof(Notice) * static_cast<std::size_t>(comm.size()));
      if (memory.data() != nullptr) impl.board = std::make_shared<NoticeBoard>(comm, std::move(memory));
    }
  }
  return impl.board.get();
}

NoticeBoard::Notice& NoticeBoard::notice(std::uint64_t meeting, int rank) const {
  const auto place =
      meeting % 2 * static_cast<std::uint64_t>(comm_.size()) + static_cast<std::uint64_t>(rank);
  return reinterpret_cast<Notice*>(memory_.data())[place];
}

// MPI's own messages go on meanwhile: somebody may wait for one that this rank has begun to send. Who has a
// core keeps it for a while: yielding to nobody lets the system put two ranks on one core (2 ranks, 2 cores:
// 16 to 37 us a call instead of 5).
void NoticeBoard::wait_for(const Notice& other, std::uint64_t meeting) const {
  constexpr int quick = 10'000;
  const int turns_between_progress = has_a_core_ ? 1000 : 16;
  for (int turn = 1; other.meeting.load(std::memory_order_acquire) < meeting; ++turn) {
    int found = 0;
    if (turn % turns_between_progress == 0)
      check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.impl().handle, &found, MPI_STATUS_IGNORE),
            "MPI_Iprobe", comm_);
    if (has_a_core_ && turn < quick)
      rest_a_moment();
    else
      sched_yield();
  }
}

void NoticeBoard::meet(const void* mine, std::size_t bytes,
                       const std::function<void(int, const std::byte*)>& read) {
  const std::uint64_t meeting = ++meetings_;
  Notice& own = notice(meeting, comm_.rank());
  if (bytes > 0) std::memcpy(own.bytes, mine, bytes);
  own.meeting.store(meeting, std::memory_order_release);
  for (int r = 0; r < comm_.size(); ++r) wait_for(notice(meeting, r), meeting);
  for (int r = 0; r < comm_.size(); ++r) read(r, notice(meeting, r).bytes);
}

}  // namespace tessera::comm
