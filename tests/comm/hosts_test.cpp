#include "comm/host/hosts.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/pending.hpp"
#include "comm/collectives/piecewise.hpp"
#include "comm/collectives/two_level.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "support/pretended_hosts.hpp"

namespace tessera::comm {
namespace {

using testing::ElementsAre;

// Placements of ranks on pretended hosts.
struct Places {
  const char* name;
  std::vector<int> (*hosts)(int ranks);
};
std::vector<int> in_turns(int ranks) {
  std::vector<int> hosts(ranks);
  for (int r = 0; r < ranks; ++r) hosts[r] = r % 2;
  return hosts;
}
std::vector<int> in_halves(int ranks) {
  std::vector<int> hosts(ranks);
  for (int r = 0; r < ranks; ++r) hosts[r] = 2 * r / ranks;
  return hosts;
}
std::vector<int> each_alone(int ranks) {
  std::vector<int> hosts(ranks);
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}
std::vector<int> last_alone(int ranks) {
  std::vector<int> hosts(ranks);
  hosts.back() = ranks > 1 ? 1 : 0;
  return hosts;
}

class Hosts : public testing::TestWithParam<Places> {
 protected:
  const Communicator& all_ = world();
  int ranks_ = all_.size(), me_ = all_.rank();
  test::PretendedHosts hosts_{GetParam().hosts(ranks_)};
};
INSTANTIATE_TEST_SUITE_P(Places, Hosts,
                         testing::Values(Places{"in_turns", in_turns}, Places{"in_halves", in_halves},
                                         Places{"each_alone", each_alone}, Places{"last_alone", last_alone}),
                         [](const auto& info) { return info.param.name; });

const std::vector<std::int64_t> lengths = {1, 2, 5, 999, 70'001, 400'000};

TEST_P(Hosts, an_all_reduce_adds_every_rank_in_place_and_not) {
  for (const auto n : lengths) {
    std::vector<double> in(n), out(in.size(), -1), expected(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<double>(i % 1000) + me_;
      expected[i] = static_cast<double>(i % 1000) * ranks_ + ranks_ * (ranks_ - 1) / 2.0;
    }
    all_reduce(all_, ReduceKind::sum, float64, in.data(), out.data(), n);
    ASSERT_EQ(out, expected) << n;
    all_reduce(all_, ReduceKind::sum, float64, in.data(), in.data(), n);
    ASSERT_EQ(in, expected) << "in place, " << n;
  }
}

TEST_P(Hosts, an_all_reduce_has_the_same_bits_on_every_rank_and_again) {
  for (const std::int64_t n : {3, 50'000, 400'000}) {
    std::vector<float> in(n), once(n), again(n), least(n), most(n);
    for (std::int64_t i = 0; i < n; ++i) in[i] = std::sin(static_cast<float>(i * (me_ + 3)));
    all_reduce(all_, ReduceKind::sum, float32, in.data(), once.data(), n);
    all_reduce(all_, ReduceKind::sum, float32, in.data(), again.data(), n);
    EXPECT_EQ(once, again);
    all_reduce(all_, ReduceKind::min, float32, once.data(), least.data(), n);
    all_reduce(all_, ReduceKind::max, float32, once.data(), most.data(), n);
    EXPECT_EQ(least, most);
  }
}

TEST_P(Hosts, a_reduce_scatter_of_unequal_blocks) {
  std::vector<std::int64_t> counts(ranks_), starts(ranks_);
  for (int r = 0; r < ranks_; ++r) counts[r] = r % 3 == 1 ? 0 : 700 * r + 5;
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), std::int64_t{0});
  std::vector<double> in(starts.back() + counts.back()), out(counts[me_], -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i) * (me_ + 1);
  reduce_scatter(all_, ReduceKind::sum, float64, in.data(), out.data(), counts);
  for (std::int64_t i = 0; i < counts[me_]; ++i)
    ASSERT_EQ(out[i], static_cast<double>(starts[me_] + i) * ranks_ * (ranks_ + 1) / 2) << i;
}

TEST_P(Hosts, a_gather_of_unequal_blocks) {
  std::vector<std::int64_t> bytes(ranks_), offsets(ranks_);
  for (int r = 0; r < ranks_; ++r) bytes[r] = r % 4 == 2 ? 0 : 100 * r + 3;
  std::exclusive_scan(bytes.begin(), bytes.end(), offsets.begin(), std::int64_t{0});
  std::vector<unsigned char> mine(bytes[me_], static_cast<unsigned char>(me_ + 1)),
      out(offsets.back() + bytes.back());
  all_gather_v(all_, mine.data(), bytes[me_], out.data(), bytes, offsets);
  for (int r = 0; r < ranks_; ++r)
    for (std::int64_t i = 0; i < bytes[r]; ++i) ASSERT_EQ(out[offsets[r] + i], r + 1);
}

TEST_P(Hosts, several_under_way_at_once_do_not_mix) {
  const std::int64_t n = 30'000;
  std::vector<float> a(n, 1), b(n, 2), sum_a(n), sum_b(n);
  std::vector<int> gathered(ranks_);
  auto first = start_all_reduce(all_, ReduceKind::sum, float32, a.data(), sum_a.data(), n);
  auto second = start_all_reduce(all_, ReduceKind::sum, float32, b.data(), sum_b.data(), n);
  auto third = start_all_gather(all_, &me_, sizeof me_, gathered.data());
  third.wait();
  first.wait();
  second.wait();
  EXPECT_EQ(sum_a, std::vector<float>(n, static_cast<float>(ranks_)));
  EXPECT_EQ(sum_b, std::vector<float>(n, static_cast<float>(2 * ranks_)));
  for (int r = 0; r < ranks_; ++r) EXPECT_EQ(gathered[r], r);
}

// The bytes that explain() prints equal the counted ones.
TEST_P(Hosts, bytes_between_hosts_are_those_that_were_predicted) {
  const auto most_of = [&](const std::function<void()>& work) {
    const auto before = bytes_from_other_hosts();
    work();
    const auto mine = bytes_from_other_hosts() - before;
    std::vector<std::int64_t> all(ranks_);
    all_gather(all_, &mine, sizeof mine, all.data());
    return *std::max_element(all.begin(), all.end());
  };
  const auto& groups = host_groups(all_);
  std::vector<float> in(400'000, 1), out(in.size() * ranks_);
  for (const std::int64_t n : {1, 1000, 400'000})
    EXPECT_EQ(most_of([&] { all_reduce(all_, ReduceKind::sum, float32, in.data(), out.data(), n); }),
              all_reduce_crossing_bytes(groups, n, 4, rates()))
        << n;
  const std::vector<std::int64_t> bytes(ranks_, 4000);
  EXPECT_EQ(most_of([&] { all_gather(all_, in.data(), 4000, out.data()); }),
            gather_crossing_bytes(groups, bytes));
  const std::vector<std::int64_t> counts(ranks_, 1000);
  EXPECT_EQ(most_of([&] { reduce_scatter(all_, ReduceKind::sum, float32, out.data(), in.data(), counts); }),
            ranks_ == 1 ? 0 : reduce_scatter_crossing_bytes(groups, bytes));
}

TEST_P(Hosts, cut_messages_to_others_below_the_handshake) {
  constexpr std::int64_t bytes = 200'000;
  std::vector<std::byte> out(bytes, std::byte(me_ + 1)), in(bytes);
  const int to = (me_ + 1) % ranks_, from = (me_ + ranks_ - 1) % ranks_;
  Requests requests(all_);
  EXPECT_EQ(requests.receive(in.data(), bytes, from, tag_user), on_one_host(me_, from) ? 1 : 4);
  EXPECT_EQ(requests.send(out.data(), bytes, to, tag_user), on_one_host(me_, to) ? 1 : 4);
  requests.wait_all();
  EXPECT_THAT(in, testing::Each(std::byte(from + 1)));
  EXPECT_EQ(piece_limit(me_, to),
            on_one_host(me_, to) ? best_piece_bytes : test::PretendedHosts::message_limit);
}

TEST(HostGroups, stand_in_the_order_of_their_first_ranks) {
  const test::PretendedHosts hosts({0, 1, 0, 2, 1});
  const auto groups = group_by_host({4, 3, 1, 0});
  EXPECT_THAT(groups.members, ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
  EXPECT_THAT(groups.place, ElementsAre(0, 0, 1, 0));
}

TEST(Rates, little_goes_through_leaders_and_much_by_blocks) {
  HostGroups groups;
  groups.members = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  EXPECT_TRUE(reduces_through_leaders(groups, 8, Rates{}));
  EXPECT_FALSE(reduces_through_leaders(groups, 8 << 20, Rates{}));
}

}  // namespace
}  // namespace tessera::comm
