// Collectives against their closed forms, on networks small enough to compute by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <tessera/error.hpp>

#include "simulate/timeline.hpp"

namespace tessera {
namespace {

constexpr double latency = 2e-6, rate = 1e9;

Rates crossbar(int ranks_per_host = 1) {
  Rates r;
  r.between = {latency, rate};
  r.inside = {1e-7, 1e10};
  r.memory_bytes_per_s = 1e30;  // additions are free
  r.topology.ranks_per_host = ranks_per_host;
  return r;
}
GroupsPtr everybody(int ranks) {
  auto groups = std::make_shared<RankGroups>(ranks);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  groups->add(std::move(all));
  return groups;
}
TimelinePlan one_collective(int ranks, RoundsPtr rounds) {
  TimelinePlan plan;
  plan.ranks = ranks, plan.names = {"it"};
  plan.steps.push_back({TimelineStep::begin, 0, 0, nullptr, std::move(rounds), 0, 0});
  plan.steps.push_back({TimelineStep::finish, 0, 0, nullptr, nullptr, 0, 0});
  return plan;
}
double seconds_of(int ranks, RoundsPtr rounds, const Rates& rates) {
  return run_timeline(one_collective(ranks, std::move(rounds)), rates).seconds;
}
// Every rank sends to every other at once, its next neighbour first.
RoundsPtr at_once(int ranks, double bytes) {
  return exchange_rounds([=](int rank) {
    PlannedMessages messages;
    for (int k = 1; k < ranks; ++k) messages.sends.push_back({(rank + k) % ranks, bytes, 1, 0});
    messages.receives = ranks - 1;
    return messages;
  });
}

class RankCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Timeline, RankCounts, testing::Values(2, 3, 4, 7, 8, 13, 64));

TEST_P(RankCounts, a_ring_all_reduce_takes_two_rounds_less_than_twice_the_ranks) {
  const int p = GetParam();
  const double block = 1e6;
  EXPECT_NEAR(seconds_of(p, ring_rounds(everybody(p), block, true), crossbar()),
              2 * (p - 1) * (latency + block / rate), 1e-12);
}
TEST_P(RankCounts, an_all_to_all_fills_every_link_of_a_crossbar) {
  const int p = GetParam();
  const double block = 1e5;
  EXPECT_NEAR(seconds_of(p, at_once(p, block), crossbar()), (p - 1) * block / rate + latency, 1e-12);
  EXPECT_NEAR(seconds_of(p, pairwise_rounds(everybody(p), block, false), crossbar()),
              (p - 1) * (block / rate + latency), 1e-12);
}
TEST_P(RankCounts, an_empty_broadcast_takes_a_latency_for_each_bit_of_a_place) {
  const int p = GetParam();
  int deepest = 0;
  for (int place = 0; place < p; ++place)
    deepest = std::max(deepest, std::popcount(static_cast<unsigned>(place)));
  for (const int root : {0, p - 1})
    EXPECT_NEAR(seconds_of(p, broadcast_rounds(everybody(p), 0, {root}, 1), crossbar()), deepest * latency,
                1e-12);
}
TEST_P(RankCounts, a_ring_broadcast_passes_all_but_the_first_behind_its_root) {
  const int p = GetParam();
  const double bytes = 1e6, one = latency + bytes / rate;
  for (const int root : {0, p - 1})
    EXPECT_NEAR(seconds_of(p, ring_broadcast_rounds(everybody(p), bytes, root), crossbar()),
                p == 2 ? one : bytes / rate + (p - 2) * one, 1e-12);
}
TEST_P(RankCounts, a_scatter_takes_its_roots_link) {
  const int p = GetParam();
  for (const int root : {0, p / 2})
    EXPECT_NEAR(seconds_of(p, scatter_rounds(everybody(p), 1e6, root), crossbar()),
                (p - 1) * 1e6 / rate + latency, 1e-12);
}
TEST_P(RankCounts, doubling_takes_a_round_for_each_power_of_two) {
  const int p = GetParam();
  const double bytes = 1000, one = latency + bytes / rate, rounds = std::floor(std::log2(p));
  const double seconds = seconds_of(p, doubling_rounds(everybody(p), bytes), crossbar());
  if (std::has_single_bit(static_cast<unsigned>(p))) {
    EXPECT_NEAR(seconds, rounds * one, 1e-12);
    return;
  }
  EXPECT_GE(seconds, (rounds + 1) * one);  // the others fold before it, and meet messages at a link
  EXPECT_LE(seconds, (rounds + 2) * one + bytes / rate + 1e-12);
}
TEST_P(RankCounts, a_processor_sends_one_message_after_the_other) {
  const int p = GetParam();
  auto rates = crossbar();
  rates.topology.message_s = 1e-5;  // more than a latency: the processor is what is waited for
  EXPECT_NEAR(seconds_of(p, at_once(p, 0), rates), 2 * (p - 1) * 1e-5, p == 2 ? 3e-6 : 1e-12);
}

TEST(Timeline, the_ranks_of_a_host_share_its_link) {
  const double bytes = 1e6;
  for (const int of_a_host : {1, 2, 5}) {
    const auto to_the_other_host = exchange_rounds([=](int rank) {
      return PlannedMessages{{{(rank + of_a_host) % (2 * of_a_host), bytes, 1, 0}}, 1};
    });
    EXPECT_NEAR(seconds_of(2 * of_a_host, to_the_other_host, crossbar(of_a_host)),
                of_a_host * bytes / rate + latency, 1e-12);
  }
}
TEST(Timeline, links_of_many_hosts_deliver_less_where_they_contend) {
  auto rates = crossbar();
  rates.topology.contention = 0.5;
  EXPECT_NEAR(seconds_of(16, at_once(16, 1e5), rates), 15 * 1e5 / rate * 4 + latency, 1e-12);
  EXPECT_NEAR(seconds_of(4, at_once(4, 1e5), rates), 3 * 1e5 / rate * 2 + latency, 1e-12);
}
TEST(Timeline, inside_of_a_host_a_rank_copies_one_message_after_the_other) {
  EXPECT_NEAR(seconds_of(8, at_once(8, 1e6), crossbar(8)), 1e-7 + 7 * 1e6 / 1e10, 1e-12);
}
TEST(Timeline, a_large_message_asks_its_receiver_first) {
  auto rates = crossbar();
  rates.topology.rendezvous_bytes = 1e5;
  for (const double bytes : {1e5, 2e5})
    EXPECT_NEAR(seconds_of(2, pairwise_rounds(everybody(2), bytes, false), rates),
                latency * (bytes > 1e5 ? 3 : 1) + bytes / rate, 1e-12);
  // The answers come while messages before it leave.
  EXPECT_NEAR(seconds_of(8, at_once(8, 2e5), rates), 7 * 2e5 / rate + 3 * latency, 1e-12);
}
TEST(Timeline, an_oversubscribed_group_sends_at_the_rate_of_its_links) {
  auto rates = crossbar();
  rates.topology.levels = 1;
  rates.topology.level[0] = {4, 1e9, 5e-7};  // four hosts share what one could fill
  const double bytes = 1e6;
  const auto across = exchange_rounds([=](int rank) {
    return PlannedMessages{{{(rank + 4) % 8, bytes, 1, 0}}, 1};
  });
  EXPECT_NEAR(seconds_of(8, across, rates), 4 * bytes / rate + latency + 5e-7, 1e-12);
  const auto beside = exchange_rounds([=](int rank) {
    return PlannedMessages{{{rank ^ 1, bytes, 1, 0}}, 1};
  });
  EXPECT_NEAR(seconds_of(8, beside, rates), bytes / rate + latency, 1e-12);
}
TEST(Timeline, two_levels_are_climbed_one_after_the_other) {
  auto rates = crossbar();
  rates.topology.levels = 2;
  rates.topology.level[0] = {2, 4e9, 1e-7};
  rates.topology.level[1] = {4, 2e9, 1e-6};
  const auto across = exchange_rounds([=](int rank) {
    return PlannedMessages{{{(rank + 4) % 8, 1e6, 1, 0}}, 1};
  });
  // Messages go in four parts: the last of sixteen begins behind fifteen at the narrowest link, and takes its
  // host's link as long as alone.
  const double part = 1e6 / 4;
  EXPECT_NEAR(seconds_of(8, across, rates), 15 * part / 2e9 + part / rate + latency + 1e-6 + 1e-7, 1e-12);
}

TEST(Timeline, gathers_and_sums_by_hosts_cross_once) {
  const double block = 1e6;
  for (const int of_a_host : {1, 2, 4}) {
    const int hosts = 3, p = hosts * of_a_host;
    const auto host_of = [=](int rank) { return rank / of_a_host; };
    for (const auto kind : {HostRounds::gather, HostRounds::reduce_scatter, HostRounds::all_reduce}) {
      const auto result = run_timeline(one_collective(p, host_rounds(everybody(p), host_of, kind, block)),
                                       crossbar(of_a_host));
      double crossed = 0;
      for (const auto& load : result.loads) crossed += load.is_out ? load.bytes : 0;
      EXPECT_DOUBLE_EQ(crossed, (kind == HostRounds::all_reduce ? 2 : 1) * block * p * (hosts - 1));
    }
    EXPECT_GT(seconds_of(p, host_rounds(everybody(p), host_of, HostRounds::through_leaders, 8),
                         crossbar(of_a_host)),
              latency);
  }
}
TEST(Timeline, hosts_of_unequal_ranks_and_groups_beside_each_other_end) {
  auto groups = std::make_shared<RankGroups>(11);
  groups->add({0, 3, 6, 9}), groups->add({1, 4, 7, 10}), groups->add({2, 5, 8});
  const auto host_of = [](int rank) { return rank / 4; };
  for (const auto kind :
       {HostRounds::gather, HostRounds::reduce_scatter, HostRounds::all_reduce, HostRounds::through_leaders})
    EXPECT_GT(seconds_of(11, host_rounds(groups, host_of, kind, 1e4), crossbar(4)), latency);
}

TEST(Timeline, what_was_begun_goes_on_while_a_rank_computes) {
  const auto rounds = at_once(4, 1e6);
  TimelinePlan plan = one_collective(4, rounds);
  plan.steps.insert(plan.steps.begin() + 1, {TimelineStep::compute, 0, 2e-3, nullptr, nullptr, 0, 0});
  EXPECT_NEAR(run_timeline(plan, crossbar()).seconds, 3e-3 + latency, 1e-12);
  plan.steps[1].seconds = 5e-3;
  EXPECT_NEAR(run_timeline(plan, crossbar()).seconds, 5e-3, 1e-12);
}
TEST(Timeline, where_nothing_overlaps_messages_wait_for_the_end_of_the_arithmetic) {
  TimelinePlan plan = one_collective(4, at_once(4, 1e6));
  plan.steps.insert(plan.steps.begin() + 1, {TimelineStep::compute, 0, 2e-3, nullptr, nullptr, 0, 0});
  auto rates = crossbar();
  rates.topology.overlaps = false;
  EXPECT_NEAR(run_timeline(plan, rates).seconds, 2e-3 + 3e-3 + latency, 1e-12);
}
TEST(Timeline, a_late_rank_is_waited_for) {
  TimelinePlan plan = one_collective(4, ring_rounds(everybody(4), 0, false));
  const auto only_two = std::make_shared<std::vector<float>>(std::vector<float>{0, 0, 1, 0});
  plan.steps.insert(plan.steps.begin(), {TimelineStep::compute, 0, 1, only_two, nullptr, 0, 0});
  plan.steps[2].of = 1;
  const auto result = run_timeline(plan, crossbar(), 4);
  EXPECT_NEAR(result.seconds, 1 + 3 * latency, 1e-12);
  EXPECT_NEAR(result.computing[0].most_s, 1, 1e-12);
  EXPECT_NEAR(result.waiting[0].seconds, (3 * (1 + 2 * latency) + 3 * latency) / 4, 5e-6);
}
TEST(Timeline, repeated_steps_take_as_long_each) {
  TimelinePlan plan;
  plan.ranks = 2, plan.names = {"it"};
  plan.steps.push_back({TimelineStep::mark, 0, 0, nullptr, nullptr, 0, 0});
  plan.steps.push_back({TimelineStep::compute, 0, 0.5, nullptr, nullptr, 0, 0});
  plan.steps.push_back({TimelineStep::repeat, 0, 0, nullptr, nullptr, 0, 9});
  EXPECT_DOUBLE_EQ(run_timeline(plan, crossbar()).seconds, 5);
}

TEST(Timeline, a_better_network_never_takes_longer) {
  const auto host_of = [](int rank) { return rank / 4; };
  const std::vector<RoundsPtr> all = {at_once(24, 3e4),
                                      ring_rounds(everybody(24), 1e4, true),
                                      pairwise_rounds(everybody(24), 5e4, false),
                                      doubling_rounds(everybody(24), 1e5),
                                      broadcast_rounds(everybody(24), 1e6, {5}, 4),
                                      host_rounds(everybody(24), host_of, HostRounds::all_reduce, 1e4)};
  for (const auto& rounds : all) {
    double before = 1e300;
    for (const double better : {1.0, 1.5, 2.0, 4.0, 8.0}) {
      auto rates = crossbar(4);
      rates.topology.levels = 1;
      rates.topology.level[0] = {2, better * 1.5e9, 1e-6 / better};
      rates.between = {latency / better, rate * better};
      const double now = seconds_of(24, rounds, rates);
      EXPECT_LE(now, before * (1 + 1e-9));
      before = now;
    }
  }
}
TEST(Timeline, too_many_messages_are_refused) {
  EXPECT_THROW(run_timeline(one_collective(8, at_once(8, 1)), crossbar(), 0, 55), ArgumentError);
  EXPECT_EQ(run_timeline(one_collective(8, at_once(8, 1)), crossbar(), 0, 56).messages, 56);
}

}  // namespace
}  // namespace tessera
