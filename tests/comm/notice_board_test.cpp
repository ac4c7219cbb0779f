// Rendezvous through shared memory: every rank reads what every rank has written, however different their
// speeds.
#include "comm/host/shared_slots.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <random>
#include <vector>

#include "base/settings.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/host/hosts.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

// The words that rank `from` writes in a rendezvous.
std::vector<std::uint64_t> notice_of(std::uint64_t rendezvous, int from, std::size_t words) {
  std::vector<std::uint64_t> notice(words);
  for (std::size_t w = 0; w < words; ++w)
    notice[w] = rendezvous * 1'000'003 + static_cast<std::uint64_t>(from) * 1009 + w;
  return notice;
}

void meet(const Communicator& comm, std::uint64_t rendezvous, std::size_t words) {
  const Waiting waiting("a meeting", comm, 0);
  auto* board = SharedSlots::of(comm);
  ASSERT_NE(board, nullptr);
  const auto mine = notice_of(rendezvous, comm.rank(), words);
  int next = 0;
  board->exchange(comm, mine.data(), words * sizeof mine[0], [&](int rank, const std::byte* bytes) {
    EXPECT_EQ(rank, next++);
    const auto* theirs = reinterpret_cast<const std::uint64_t*>(bytes);
    EXPECT_EQ(std::vector(theirs, theirs + words), notice_of(rendezvous, rank, words))
        << "meeting " << rendezvous;
  });
  EXPECT_EQ(next, comm.size());
}

TEST(SharedSlots, everybody_reads_everybody) {
  if (world().size() == 1 || host_count() > 1) {
    EXPECT_EQ(SharedSlots::of(world()), nullptr);
    return;
  }
  ASSERT_TRUE(share_memory(world().device_ids()));
  std::mt19937 random(static_cast<unsigned>(world().rank()));
  for (std::uint64_t rendezvous = 0; rendezvous < 2000; ++rendezvous) {
    if (random() % 50 == 0) usleep(random() % 300);
    meet(world(), rendezvous, rendezvous % 128);
  }
}

// Groups that share ranks have separate slots: a rank may be ahead in one group while others still read in
// the other.
TEST(SharedSlots, groups_do_not_disturb_each_other) {
  const int ranks = world().size(), me = world().rank();
  if (ranks < 3 || host_count() > 1) GTEST_SKIP() << "needs three ranks of one host";
  std::vector<int> all_but_last(static_cast<std::size_t>(ranks) - 1),
      backwards(static_cast<std::size_t>(ranks));
  std::iota(all_but_last.begin(), all_but_last.end(), 0);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  std::mt19937 random(static_cast<unsigned>(me) + 99);
  for (std::uint64_t rendezvous = 0; rendezvous < 500; ++rendezvous) {
    if (random() % 20 == 0) usleep(random() % 200);
    if (me != ranks - 1) meet(group(all_but_last), rendezvous, 3);
    meet(world(), rendezvous * 7, 1);
    meet(group(backwards), rendezvous * 11, 2);
  }
}

TEST(SharedSlots, the_MPI_library_can_be_asked_for) {
  const SettingScope mpi("TESSERA_COLLECTIVES", "mpi");
  EXPECT_EQ(SharedSlots::of(world()), nullptr);
}

}  // namespace
}  // namespace tessera::comm
