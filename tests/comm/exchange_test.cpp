#include <gmock/gmock.h>
#include <tessera/error.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include "base/settings.hpp"
#include "comm/pending.hpp"
#include "comm/point_to_point.hpp"

namespace tessera::comm {
namespace {

// Everybody sends everybody (r + 1) * 600 bytes, twice, and one empty message.
struct Pattern {
  std::vector<std::vector<std::byte>> out, in;
  std::vector<Message> sends, receives;

  explicit Pattern(const Communicator& comm) {
    const int me = comm.device_ids()[static_cast<std::size_t>(comm.rank())];
    out.reserve(64), in.reserve(64);
    for (const int peer : comm.device_ids()) {
      if (peer == me) continue;
      for (int round = 0; round < 2; ++round) {
        out.emplace_back(static_cast<std::size_t>((me + 1) * 600), static_cast<std::byte>(10 * round + me));
        in.emplace_back(static_cast<std::size_t>((peer + 1) * 600));
        sends.push_back({peer, out.back().data(), static_cast<std::int64_t>(out.back().size())});
        receives.push_back({peer, in.back().data(), static_cast<std::int64_t>(in.back().size())});
      }
      sends.push_back({peer, nullptr, 0});
      receives.push_back({peer, nullptr, 0});
    }
  }

  // Whether receives[i] holds what its peer sent: messages of a pair in order.
  bool is_right(std::size_t i) const {
    const auto value = static_cast<std::byte>(10 * static_cast<int>(i % 3) + receives[i].peer);
    return std::all_of(receives[i].data, receives[i].data + receives[i].bytes, [&](std::byte b) { return b == value; });
  }
};

void expect_whole_exchange(const Communicator& comm) {
  Pattern pattern(comm);
  std::map<std::size_t, int> calls;
  exchange(
      comm, pattern.sends, pattern.receives,
      [&](std::size_t i) {
        ++calls[i];
        EXPECT_TRUE(pattern.is_right(i)) << "when arrived(" << i << ") is called the message is there";
      },
      "a test");
  EXPECT_EQ(calls.size(), pattern.receives.size());
  for (const auto& [i, times] : calls) EXPECT_EQ(times, 1) << i;
}

TEST(Exchange, delivers_every_message_once_and_in_order) { expect_whole_exchange(world()); }

TEST(Exchange, delivers_in_pieces) {
  const SettingScope limit("TESSERA_MESSAGE_LIMIT", "1000");
  expect_whole_exchange(world());
}

TEST(Exchange, peers_are_device_ids_in_any_group) {
  const auto& all = world();
  std::vector<int> backwards(all.device_ids().rbegin(), all.device_ids().rend());
  expect_whole_exchange(group(backwards));
  if (all.rank() % 2 == 0) {
    std::vector<int> even;
    for (int id = 0; id < all.size(); id += 2) even.push_back(id);
    expect_whole_exchange(group(even));
  }
}

TEST(Exchange, works_without_a_callback_and_while_another_is_under_way) {
  Pattern first(world()), second(world());
  Pending a = start_exchange(world(), first.sends, first.receives, nullptr, "first");
  Pending b = start_exchange(world(), second.sends, second.receives, nullptr, "second");
  b.wait();
  a.wait();
  for (std::size_t i = 0; i < first.receives.size(); ++i) EXPECT_TRUE(first.is_right(i) && second.is_right(i)) << i;
}

TEST(Exchange, refuses_itself_and_strangers) {
  std::byte b{};
  const Message to_me{world().rank(), &b, 1}, to_nobody{world().size(), &b, 1};
  EXPECT_THROW(exchange(world(), {&to_me, 1}, {}, nullptr, "x"), InternalError);
  EXPECT_THROW(exchange(world(), {}, {&to_nobody, 1}, nullptr, "x"), InternalError);
}

TEST(PointToPoint, a_ring_passes_panels_along) {
  const auto& all = world();
  const int right = (all.rank() + 1) % all.size(), left = (all.rank() + all.size() - 1) % all.size();
  const SettingScope limit("TESSERA_MESSAGE_LIMIT", "1000");
  std::vector<double> panel(777, all.rank()), incoming(panel.size());
  send_receive(all, panel.data(), 777 * 8, right, incoming.data(), 777 * 8, left);
  EXPECT_THAT(incoming, testing::Each(static_cast<double>(left)));
  if (all.size() == 1) return;
  Pending receiving = start_receive(all, incoming.data(), 777 * 8, right, 5);
  send(all, std::span<const double>(panel), left, 5);
  receiving.wait();
  EXPECT_THAT(incoming, testing::Each(static_cast<double>(right)));
  if (all.rank() == 0) send(all, std::span<const double>(panel), right);
  if (all.rank() == 1) receive(all, std::span<double>(incoming), 0);
}

TEST(PointToPoint, tags_keep_streams_apart) {
  const auto& all = world();
  if (all.size() == 1) return;
  int a = 1, b = 2, from_a = 0, from_b = 0;
  if (all.rank() == 0) {
    Pending first = start_send(all, &a, 4, 1, 1), second = start_send(all, &b, 4, 1, 2);
  } else if (all.rank() == 1) {
    receive(all, &from_b, 4, 0, 2);
    receive(all, &from_a, 4, 0, 1);
    EXPECT_EQ(from_a, 1);
    EXPECT_EQ(from_b, 2);
  }
}

}  // namespace
}  // namespace tessera::comm
