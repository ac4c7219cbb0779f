// Many orders of the same devices, and sets of devices that are no longer used.
#include <gtest/gtest.h>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/pending.hpp"
#include "comm/collectives/point_to_point.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "comm/watch/agreement.hpp"
#include "support/pretended_hosts.hpp"

namespace tessera::comm {
namespace {

// The term of rank r of a group of n in element i: whole numbers, so that sums are exact in any order.
double term(int r, std::int64_t i) { return static_cast<double>((r + 1) * (i % 97 + 1)); }
double sum_of_terms(int n, std::int64_t i) { return n * (n + 1) / 2.0 * static_cast<double>(i % 97 + 1); }

std::vector<double> terms(int r, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = term(r, i);
  return values;
}

void expect_sums(const std::vector<double>& values, int n, std::int64_t first = 0) {
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], sum_of_terms(n, first + static_cast<std::int64_t>(i))) << i;
}

void expect_reductions(const Communicator& comm, std::int64_t count) {
  const int n = comm.size(), me = comm.rank();
  const auto mine = terms(me, count);
  std::vector<double> sum(mine.size());
  all_reduce(comm, ReduceKind::sum, float64, mine.data(), sum.data(), count);
  expect_sums(sum, n);
  std::fill(sum.begin(), sum.end(), 0);
  start_all_reduce(comm, ReduceKind::sum, float64, mine.data(), sum.data(), count).wait();
  expect_sums(sum, n);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n));  // uneven; rank 0 has none
  for (int r = 0; r < n; ++r) counts[static_cast<std::size_t>(r)] = r * count;
  const auto whole = terms(me, count * n * (n - 1) / 2);
  std::vector<double> block(static_cast<std::size_t>(me * count));
  reduce_scatter(comm, ReduceKind::sum, float64, whole.data(), block.data(), counts);
  expect_sums(block, n, count * me * (me - 1) / 2);
}

void expect_gathers(const Communicator& comm, std::int64_t count) {
  const auto mine = terms(comm.rank(), count);
  const auto bytes = count * 8;
  std::vector<double> expected;
  for (int r = 0; r < comm.size(); ++r) {
    const auto theirs = terms(r, count);
    expected.insert(expected.end(), theirs.begin(), theirs.end());
  }
  std::vector<double> all(expected.size());
  all_gather(comm, mine.data(), bytes, all.data());
  ASSERT_EQ(all, expected);
  std::fill(all.begin(), all.end(), 0);
  start_all_gather(comm, mine.data(), bytes, all.data()).wait();
  ASSERT_EQ(all, expected);
  const int root = comm.size() / 2;
  auto sent = mine;
  broadcast(comm, sent.data(), bytes, root);
  ASSERT_EQ(sent, terms(root, count));
  sent = mine;
  start_broadcast(comm, sent.data(), bytes, root).wait();
  ASSERT_EQ(sent, terms(root, count));
}

void expect_messages(const Communicator& comm, std::int64_t count) {
  const int n = comm.size(), me = comm.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  auto mine = terms(me, count);
  std::vector<double> theirs(mine.size());
  send_receive(comm, mine.data(), count * 8, next, theirs.data(), count * 8, before);
  ASSERT_EQ(theirs, terms(before, count));
  if (n == 1) return;
  std::fill(theirs.begin(), theirs.end(), 0);
  const auto place = [](std::vector<double>& values) { return reinterpret_cast<std::byte*>(values.data()); };
  const Message send{comm.device_ids()[static_cast<std::size_t>(next)], place(mine), count * 8};
  const Message receive{comm.device_ids()[static_cast<std::size_t>(before)], place(theirs), count * 8};
  exchange(comm, {&send, 1}, {&receive, 1}, {}, "a ring");
  ASSERT_EQ(theirs, terms(before, count));
}

void expect_texts(const Communicator& comm) {
  const int me = comm.rank(), last = comm.size() - 1;
  const auto texts = gather_texts(comm, std::string(static_cast<std::size_t>(me), 'x') + std::to_string(me));
  for (int r = 0; r <= last; ++r)
    ASSERT_EQ(texts[static_cast<std::size_t>(r)],
              std::string(static_cast<std::size_t>(r), 'x') + std::to_string(r));
  const auto first = first_error(comm, me >= last / 2 ? "no " + std::to_string(me) : "");
  EXPECT_EQ(first, "rank " + std::to_string(comm.device_ids()[static_cast<std::size_t>(last / 2)]) + ": no " +
                       std::to_string(last / 2));
  EXPECT_FALSE(all_ok(comm, me != last));
  EXPECT_TRUE(all_ok(comm, true));
}

struct Way {
  const char* collectives;
  const char* message_limit;
  int hosts = 0;  // ranks treated as if they were on so many hosts, by turns; 0: as they are
};
class Orders : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam().hosts == 0) return;
    std::vector<int> hosts;
    for (const int rank : world().device_ids()) hosts.push_back(rank % GetParam().hosts);
    hosts_.emplace(hosts);
  }
  std::optional<test::PretendedHosts> hosts_;
  SettingScope collectives_{"TESSERA_COLLECTIVES", GetParam().collectives};
  SettingScope limit_{"TESSERA_MESSAGE_LIMIT", GetParam().message_limit};
};
INSTANTIATE_TEST_SUITE_P(Ways, Orders,
                         testing::Values(Way{"auto", "1073741824"}, Way{"mpi", "1073741824"},
                                         Way{"own", "1073741824"}, Way{"mpi", "1000"},
                                         Way{"auto", "1073741824", 2}, Way{"mpi", "1073741824", 2},
                                         Way{"own", "1073741824", 2}),
                         [](const auto& info) {
                           return std::string(info.param.collectives) + "_" + info.param.message_limit +
                                  (info.param.hosts > 0 ? "_on_two_hosts" : "");
                         });

// The members of a subset, in an order that all ranks draw alike.
std::vector<int> draw_order(std::mt19937& random, int size) {
  std::vector<int> ids = world().device_ids();
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random() % i]);
  ids.resize(static_cast<std::size_t>(size));
  return ids;
}

TEST_P(Orders, each_call_sees_the_ranks_in_order) {
  std::mt19937 random(28);
  const int ranks = world().size(), me = world().rank();
  for (int trial = 0; trial < 8; ++trial) {
    const auto ids = draw_order(random, ranks - trial % std::max(1, ranks - 1));
    if (std::find(ids.begin(), ids.end(), me) == ids.end()) continue;
    const auto held = hold_group(ids);
    ASSERT_EQ(held->device_ids()[static_cast<std::size_t>(held->rank())], me);
    for (const std::int64_t count : {1, 33, 9001}) {
      expect_reductions(*held, count);
      expect_gathers(*held, count);
      expect_messages(*held, count);
    }
    expect_texts(*held);
  }
}

// Several collectives in flight over one set of ranks in different orders: their messages do not mix.
TEST_P(Orders, of_one_set_travel_at_the_same_time) {
  const auto forwards = hold_group(world().device_ids());
  const auto backwards = hold_group({world().device_ids().rbegin(), world().device_ids().rend()});
  for (const std::int64_t count : {5, 100'003}) {
    const auto mine = terms(forwards->rank(), count), turned = terms(backwards->rank(), count);
    std::vector<double> a(mine.size()), b(mine.size()),
        c(mine.size() * static_cast<std::size_t>(world().size()));
    auto first = start_all_reduce(*forwards, ReduceKind::sum, float64, mine.data(), a.data(), count);
    auto second = start_all_reduce(*backwards, ReduceKind::sum, float64, turned.data(), b.data(), count);
    auto third = start_all_gather(*backwards, turned.data(), count * 8, c.data());
    expect_reductions(*backwards, 7);
    third.wait();
    second.wait();
    first.wait();
    expect_sums(a, world().size());
    expect_sums(b, world().size());
    for (int r = 0; r < world().size(); ++r)
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(c[static_cast<std::size_t>(r * count + i)], term(r, i)) << r << ' ' << i;
  }
}

TEST(Groups, all_orders_of_a_set_share_one_communicator) {
  const auto before = group_count();
  std::vector<int> ids = world().device_ids();
  if (ids.size() > 6) ids.resize(6);
  if (world().rank() >= static_cast<int>(ids.size())) return;
  do {
    EXPECT_EQ(group(ids).device_ids(), ids);
  } while (std::next_permutation(ids.begin(), ids.end()));
  EXPECT_LE(group_count(), before + 1);
}

// Sums on meshes that have the devices in different orders: the number of MPI communicators does not grow.
TEST(Groups, programs_on_meshes_in_all_orders) {
  const int ranks = world().size();
  const auto before = group_count();
  auto devices = tessera::devices();
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  int trials = 0;
  do {
    std::vector<Device> turned;
    for (const int i : order) turned.push_back(devices[static_cast<std::size_t>(i)]);
    const Mesh mesh = make_mesh({ranks}, {"x"}, turned);
    std::vector<double> values(static_cast<std::size_t>(3 * ranks - 1));
    std::iota(values.begin(), values.end(), trials);
    const Array x = device_put(array(values), NamedSharding(mesh, P("x")));
    const auto n = static_cast<double>(values.size());
    EXPECT_EQ(sum(x).item<double>(), n * trials + n * (n - 1) / 2) << trials;
  } while (++trials < 50 && std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(group_count(), before);
}

class FewGroups : public testing::Test {
 protected:
  FewGroups() : before_(set_most_groups(1)) {}
  ~FewGroups() override { set_most_groups(before_); }
  // An evaluation of all ranks with a new number of elements, so that no earlier agreement covers it.
  static void evaluate_on_all() {
    static int calls = 0;
    std::vector<int> values(static_cast<std::size_t>(++calls), 1);
    EXPECT_EQ(sum(array(values)).item<int>(), calls);
  }
  // Every set of two or more devices, except that of all devices: its members add up ones.
  static int use_all_sets() {
    const int ranks = world().size(), me = world().rank();
    int used = 0;
    for (int bits = 1; bits + 1 < 1 << ranks; ++bits) {
      std::vector<int> ids;
      for (int id = 0; id < ranks; ++id)
        if (bits >> id & 1) ids.push_back(id);
      if (ids.size() < 2 || (bits >> me & 1) == 0) continue;
      const int one = 1;
      int sum = 0;
      all_reduce(group(ids), ReduceKind::sum, int32, &one, &sum, 1);
      EXPECT_EQ(sum, static_cast<int>(ids.size()));
      ++used;
    }
    return used;
  }

 private:
  std::size_t before_;
};

TEST_F(FewGroups, what_nobody_uses_is_freed_and_made_again) {
  if (world().size() < 3 || world().size() > 7) GTEST_SKIP() << "needs 3 to 7 ranks";
  evaluate_on_all();
  for (int round = 0; round < 3; ++round) {
    set_most_groups(1);
    const int used = use_all_sets();
    EXPECT_GE(group_count(), static_cast<std::size_t>(used));
    EXPECT_EQ(has_too_many_groups(), used > 1);
    evaluate_on_all();
    EXPECT_FALSE(has_too_many_groups());
    EXPECT_LT(group_count(), static_cast<std::size_t>(used)) << "round " << round;
  }
}

// If one rank holds a set's communicator, all of its members keep it.
TEST_F(FewGroups, what_one_rank_holds_stays_on_all) {
  const int me = world().rank();
  if (world().size() < 3 || world().size() > 7) GTEST_SKIP() << "needs 3 to 7 ranks";
  std::shared_ptr<const Communicator> held;
  if (me == 1) held = hold_group({1, 0});
  if (me == 0) group({0, 1});
  for (int round = 0; round < 3; ++round) {
    set_most_groups(1);
    use_all_sets();
    evaluate_on_all();
    if (me > 1) continue;
    EXPECT_GE(group_count(), 1u);
    const auto& pair = me == 1 ? *held : group({1, 0});
    const int mine = 10 + me;
    std::vector<int> both(2);
    all_gather(pair, &mine, sizeof mine, both.data());
    EXPECT_EQ(both, (std::vector{11, 10}));
  }
}

// A subset of the ranks frees the groups inside it; other ranks take no part.
TEST_F(FewGroups, a_part_of_the_ranks_frees_its_own) {
  const int ranks = world().size(), me = world().rank();
  if (ranks < 4 || ranks > 7) GTEST_SKIP() << "needs 4 to 7 ranks";
  evaluate_on_all();
  set_most_groups(1);
  evaluate_on_all();
  if (me < 3) {
    group({0, 1, 2});
    for (const auto& ids : {std::vector{0, 1}, {0, 2}, {1, 2}})
      if (std::find(ids.begin(), ids.end(), me) != ids.end()) group(ids);
    set_most_groups(1);
    const auto before = group_count();
    auto some = tessera::devices();
    some.resize(3);
    const Mesh mesh = make_mesh({3}, {"x"}, some);
    const Array x = device_put(array(std::vector{1.0, 2.0, 4.0, 8.0}), NamedSharding(mesh, P("x")));
    eval(sum(x));
    EXPECT_EQ(group_count(), before - 2);
  }
  evaluate_on_all();
}

}  // namespace
}  // namespace tessera::comm
