#include "comm/watch/agreement.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string disagreement(const Communicator& comm, std::uint64_t fingerprint,
                         const std::string& description) {
  try {
    agree(comm, fingerprint, [&] { return description; });
    return "";
  } catch (const DisagreementError& error) {
    return error.what();
  }
}

TEST(Agreement, equal_fingerprints_pass_without_a_description) {
  agree(world(), 42, []() -> std::string { throw std::logic_error("described for nothing"); });
}

TEST(Agreement, a_rank_that_differs_is_named_on_every_rank) {
  const int ranks = world().size(), me = world().rank();
  if (ranks == 1) return;
  const bool odd_one = me == ranks - 1;
  const std::string text =
      disagreement(world(), odd_one ? 1 : 2, odd_one ? "sum(x, axis 1)" : "sum(x, axis 0)");
  EXPECT_THAT(text, HasSubstr("rank " + std::to_string(ranks - 1) + ": sum(x, axis 1)"));
  EXPECT_THAT(text, HasSubstr(ranks == 2   ? "rank 0: sum(x, axis 0)"
                              : ranks == 3 ? "ranks 0, 1: sum"
                                           : "ranks 0-" + std::to_string(ranks - 2) + ": sum"));
}

TEST(Agreement, holds_within_a_group_only) {
  const int ranks = world().size(), me = world().rank();
  if (ranks < 4 || me >= 3) return;
  const auto& three = group({2, 0, 1});
  EXPECT_EQ(disagreement(three, 9, "same"), "");
  EXPECT_THAT(disagreement(three, static_cast<std::uint64_t>(me), "mine is " + std::to_string(me)),
              HasSubstr("rank 1: mine is 1"));
}

TEST(Agreement, what_sends_nothing_is_put_off_to_the_next_agreement_and_seldom_longer) {
  if (world().size() == 1) return;
  constexpr std::uint64_t call = 1234567;
  agree(world(), 1, [] { return std::string("before"); });  // flushes what other tests deferred
  EXPECT_FALSE(put_off(world(), call)) << "never agreed on";
  may_put_off(world(), call, "tanh at a.cpp:3");
  for (int i = 0; i < 127; ++i) EXPECT_TRUE(put_off(world(), call));
  EXPECT_FALSE(put_off(world(), call));
  EXPECT_EQ(disagreement(world(), call, "the 128th"), "");
  EXPECT_TRUE(put_off(world(), call));
  EXPECT_EQ(disagreement(world(), 7, "sum(x)"), "");
}

TEST(Agreement, finds_calls_that_were_put_off_on_some_ranks_only) {
  const int ranks = world().size();
  if (ranks == 1) return;
  const bool is_last = world().rank() == ranks - 1;
  may_put_off(world(), 77, "tanh at a.cpp:3");
  may_put_off(world(), 78, "sqrt at a.cpp:4");
  for (int i = 0; i < (is_last ? 2 : 1); ++i) EXPECT_TRUE(put_off(world(), 77));
  const auto more = disagreement(world(), 9, "sum(x)");
  EXPECT_THAT(more,
              HasSubstr("rank " + std::to_string(ranks - 1) +
                        ": sum(x)\n    after 2 evaluations that send nothing, the last: tanh at a.cpp:3"));
  EXPECT_THAT(more, HasSubstr("after 1 evaluation that sends nothing, the last: tanh"));
  EXPECT_TRUE(put_off(world(), is_last ? 78 : 77));
  EXPECT_THAT(disagreement(world(), 9, "sum(x)"), HasSubstr("the last: sqrt at a.cpp:4"));
  EXPECT_EQ(disagreement(world(), 9, "sum(x)"), "") << "nothing is left of them";
}

// The next agreement among any ranks that share the channel must detect a rank that deferred one check more
// than the others.
struct Parts {
  const char* name;
  std::vector<int> put_off_on, agreed_on;
};
std::vector<Parts> parts_of_three_or_more() {
  std::vector<int> all(world().size());
  for (int i = 0; i < world().size(); ++i) all[i] = i;
  return {{"the same part", {0, 1}, {0, 1}},
          {"a part, then all", {0, 1}, all},
          {"all, then a part", all, {0, 1}},
          {"two parts that overlap in two ranks", {0, 1, 2}, {1, 2, world().size() - 1}}};
}
bool is_member(const std::vector<int>& ids) {
  return std::find(ids.begin(), ids.end(), world().rank()) != ids.end();
}
// Returns "" if the ranks agreed or this rank did not take part.
std::string agreement_of(std::vector<int> ids) {
  if (!is_member(ids)) return "";
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return disagreement(group(ids), 5, "sum(x)");
}

TEST(Agreement, finds_what_one_rank_put_off_on_another_group) {
  if (world().size() < 3) return;
  constexpr std::uint64_t call = 4711;
  for (const auto& [name, put_off_on, agreed_on] : parts_of_three_or_more()) {
    const bool member = is_member(put_off_on), odd_one = world().rank() == 1;
    if (member) may_put_off(group(put_off_on), call, "tanh at a.cpp:3");
    if (member) {
      EXPECT_TRUE(put_off(group(put_off_on), call)) << name;
    }
    EXPECT_EQ(agreement_of(agreed_on), "") << name << ": all members have put off the same";
    for (int i = 0; member && i < (odd_one ? 3 : 2); ++i)
      EXPECT_TRUE(put_off(group(put_off_on), call)) << name;
    const auto text = agreement_of(agreed_on);
    if (is_member(agreed_on)) {
      EXPECT_THAT(text, HasSubstr("that send nothing, the last: tanh at a.cpp:3")) << name;
    }
    if (member) disagreement(group(put_off_on), 6, "settles what a part has compared but not settled");
    EXPECT_EQ(agreement_of(agreed_on), "") << name << ": nothing is left of them";
  }
}

TEST(Agreement, finds_that_only_one_rank_put_off_anything_on_a_part) {
  if (world().size() < 3) return;
  const bool member = world().rank() < 2;
  if (member) {
    may_put_off(group({0, 1}), 4712, "tanh at a.cpp:3");
    disagreement(group({0, 1}), 1, "before");
    if (world().rank() == 0) {
      EXPECT_TRUE(put_off(group({0, 1}), 4712));
    }
  }
  EXPECT_THAT(disagreement(world(), 8, "sum(x)"),
              HasSubstr("after 1 evaluation on devices 0, 1 that sends nothing, the last: tanh at a.cpp:3"));
  EXPECT_EQ(disagreement(world(), 8, "sum(x)"), "");
}

TEST(Agreement, of_ranks_that_share_none_but_one_with_a_channel_leaves_it_alone) {
  if (world().size() < 4) return;
  const int me = world().rank();
  if (me < 2) {
    may_put_off(group({0, 1}), 4713, "tanh at a.cpp:3");
    EXPECT_TRUE(put_off(group({0, 1}), 4713));
    if (me == 1) {
      EXPECT_TRUE(put_off(group({0, 1}), 4713));
    }
  }
  if (me >= 1 && me < 4) {
    EXPECT_EQ(disagreement(group({1, 2, 3}), 2, "sum(x)"), "");
  }
  EXPECT_THAT(disagreement(world(), 3, "sum(y)"), HasSubstr("rank 1: sum(y)\n    after 2 evaluations on"));
}

TEST(Agreement, all_ok_needs_everyone) {
  EXPECT_TRUE(all_ok(world(), true));
  EXPECT_FALSE(all_ok(world(), world().rank() != world().size() - 1));
}

TEST(Agreement, the_lowest_failing_rank_speaks) {
  const int me = world().rank(), ranks = world().size();
  EXPECT_EQ(first_error(world(), ""), "");
  const int first = ranks / 2;
  EXPECT_EQ(first_error(world(), me >= first ? "disk full on " + std::to_string(me) : ""),
            "rank " + std::to_string(first) + ": disk full on " + std::to_string(first));
}

TEST(Group, order_of_ids_is_order_of_ranks) {
  const auto& all = world();
  std::vector<int> backwards(all.device_ids().rbegin(), all.device_ids().rend());
  const auto& mirrored = group(backwards);
  EXPECT_EQ(mirrored.rank(), all.size() - 1 - all.rank());
  EXPECT_EQ(mirrored.rank_of(all.rank()), mirrored.rank());
  int largest = mirrored.rank();
  broadcast(mirrored, &largest, sizeof largest, all.size() - 1);
  EXPECT_EQ(largest, all.size() - 1);
  EXPECT_EQ(&group(backwards), &mirrored) << "made once";
  EXPECT_EQ(&group(all.device_ids()), &all);
}

TEST(Group, only_members_take_part) {
  const auto& all = world();
  std::vector<int> front, back;
  for (const int id : all.device_ids()) (id < all.size() / 2 ? front : back).push_back(id);
  const auto& half = group(all.rank() < all.size() / 2 ? front : back);
  int one = 1, sum = 0;
  all_reduce(half, ReduceKind::sum, int32, &one, &sum, 1);
  EXPECT_EQ(sum, half.size());
  EXPECT_EQ(half.rank_of(all.size() + 5), -1);
}

TEST(Group, overlapping_groups_can_be_made_in_a_chain) {
  const auto& all = world();
  for (int first = 0; first + 1 < all.size(); ++first)
    if (all.rank() == first || all.rank() == first + 1) {
      int one = 1, sum = 0;
      all_reduce(group({first, first + 1}), ReduceKind::sum, int32, &one, &sum, 1);
      EXPECT_EQ(sum, 2);
    }
}

TEST(Group, strangers_and_doubles_are_refused_without_communication) {
  const int me = world().rank(), ranks = world().size();
  EXPECT_THROW(group({me, me}), InternalError);
  EXPECT_THROW(group({me, ranks}), InternalError);
  if (ranks == 1) return;
  EXPECT_THROW(group({(me + 1) % ranks}), InternalError);
}

TEST(Traffic, counts_by_kind) {
  const auto before = traffic("all-gather"), total_before = traffic();
  count("all-gather", 100);
  count("all-gather", 20);
  count("all-to-all", 3);
  EXPECT_EQ(traffic("all-gather").calls - before.calls, 2);
  EXPECT_EQ(traffic("all-gather").bytes - before.bytes, 120);
  EXPECT_EQ(traffic().bytes - total_before.bytes, 123);
  EXPECT_EQ(traffic("nothing of the kind").calls, 0);
}

TEST(FlightRecorder, remembers_calls_and_what_they_were_for) {
  if (world().size() == 1) return;
  {
    const Purpose purpose("x + y at main.cpp:9");
    barrier(world());
  }
  EXPECT_THAT(recent_calls(1), HasSubstr("barrier on devices 0"));
  EXPECT_THAT(recent_calls(1), HasSubstr("for x + y at main.cpp:9"));
  barrier(world());
  EXPECT_THAT(recent_calls(1), Not(HasSubstr("main.cpp")));
}

TEST(JobPosition, knows_ranks_and_hosts) {
  const auto& job = place_in_job();
  EXPECT_EQ(job.size, world().size());
  EXPECT_EQ(static_cast<int>(job.hosts.size()), job.size);
  EXPECT_GE(job.cores, 1);
  EXPECT_LT(job.host_rank, job.host_size);
  int here = 0;
  for (int rank = 0; rank < job.size; ++rank) here += on_one_host(rank, job.rank) ? 1 : 0;
  EXPECT_EQ(job.host_size, here);
}

}  // namespace
}  // namespace tessera::comm
