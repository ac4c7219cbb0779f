#include "comm/watch/rendezvous.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace tessera::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The attendance records of a host's ranks, as the ranks would write them.
class Host {
 public:
  explicit Host(int places) {
    for (int i = 0; i < places; ++i) accounts_.push_back(std::make_unique<Attendance>());
  }
  // The rank enters its n-th rendezvous of the group and waits there until it leaves.
  void enters(int place, std::uint64_t group, std::vector<int> members, std::int64_t n = 1) {
    leaves_after(place, group, n);
    auto& account = *accounts_[static_cast<std::size_t>(place)];
    account.group = group;
    account.number = n;
    for (const int m : members)
      account.members[static_cast<std::size_t>(m) / 64] |= std::uint64_t{1} << (m % 64);
  }
  void leaves_after(int place, std::uint64_t group, std::int64_t n) {
    auto& slot = accounts_[static_cast<std::size_t>(place)]->attended[group % Attendance::kept];
    slot.group = group;
    slot.rendezvous_count = n;
  }
  Attendance& account(int place) { return *accounts_[static_cast<std::size_t>(place)]; }
  std::vector<int> stuck() const {
    return stuck_ranks(static_cast<int>(accounts_.size()),
                       [&](int i) -> const Attendance& { return *accounts_[static_cast<std::size_t>(i)]; });
  }

 private:
  std::vector<std::unique_ptr<Attendance>> accounts_;
};

TEST(Rendezvous, of_ranks_in_one_place_nobody_is_stuck) {
  Host host(3);
  for (int r = 0; r < 3; ++r) host.enters(r, 7, {0, 1, 2});
  EXPECT_THAT(host.stuck(), IsEmpty());
}

TEST(Rendezvous, waits_for_a_rank_that_computes) {
  Host host(3);
  host.enters(0, 7, {0, 1, 2});
  host.enters(1, 7, {0, 1, 2});
  EXPECT_THAT(host.stuck(), IsEmpty());
}

TEST(Rendezvous, of_two_that_wait_for_each_other_both_are_stuck) {
  Host host(3);
  host.enters(0, 7, {0, 1});
  host.enters(1, 8, {0, 1, 2});
  EXPECT_THAT(host.stuck(), ElementsAre(0, 1));
}

TEST(Rendezvous, a_circle_of_many_is_found_with_those_who_wait_for_it) {
  Host host(129);  // without collisions of the groups' slots
  for (int r = 0; r < 128; ++r) host.enters(r, 1000 + static_cast<std::uint64_t>(r), {r, (r + 1) % 128});
  host.enters(128, 9, {127, 128});
  EXPECT_EQ(host.stuck().size(), 129u);
}

TEST(Rendezvous, a_chain_that_ends_at_a_rank_that_computes_goes_on) {
  Host host(4);
  host.enters(0, 7, {0, 1});
  host.enters(1, 8, {1, 2});
  host.enters(2, 9, {2, 3});
  EXPECT_THAT(host.stuck(), IsEmpty());
}

TEST(Rendezvous, who_was_there_and_went_on_is_not_waited_for) {
  Host host(2);
  host.leaves_after(1, 7, 1);  // rank 1 was in the first rendezvous of group 7
  host.enters(0, 7, {0, 1}, 1);
  host.enters(1, 8, {0, 1});
  EXPECT_THAT(host.stuck(), IsEmpty());
  host.enters(0, 7, {0, 1}, 2);  // rank 1 is not in the second one
  EXPECT_THAT(host.stuck(), ElementsAre(0, 1));
}

TEST(Rendezvous, where_a_group_was_forgotten_nobody_is_accused) {
  Host host(2);
  host.enters(0, 7, {0, 1});
  host.leaves_after(1, 7 + Attendance::kept, 1);  // in the slot of group 7
  host.enters(1, 8, {0, 1});
  EXPECT_THAT(host.stuck(), IsEmpty());
}

TEST(Rendezvous, while_a_rank_writes_nothing_is_certain) {
  Host host(2);
  host.enters(0, 7, {0, 1});
  host.enters(1, 8, {0, 1});
  host.account(1).version = 3;
  EXPECT_THAT(host.stuck(), IsEmpty());
  host.account(1).version = 4;
  EXPECT_THAT(host.stuck(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace tessera::comm
