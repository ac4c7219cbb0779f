#include <gmock/gmock.h>
#include <tessera/error.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include "base/settings.hpp"
#include "comm/collectives/pending.hpp"
#include "comm/collectives/piecewise.hpp"
#include "comm/collectives/point_to_point.hpp"

namespace tessera::comm {
namespace {

// Every rank sends (r + 1) * 600 bytes to every rank, twice, and one empty message.
struct Pattern {
  std::vector<std::vector<std::byte>> out, in;
  std::vector<Message> sends, receives;

  explicit Pattern(const Communicator& comm) {
    const int me = comm.device_ids()[comm.rank()];
    out.reserve(64), in.reserve(64);
    for (const int peer : comm.device_ids()) {
      if (peer == me) continue;
      for (int round = 0; round < 2; ++round) {
        out.emplace_back((me + 1) * 600, static_cast<std::byte>(10 * round + me));
        in.emplace_back((peer + 1) * 600);
        sends.push_back({peer, out.back().data(), static_cast<std::int64_t>(out.back().size())});
        receives.push_back({peer, in.back().data(), static_cast<std::int64_t>(in.back().size())});
      }
      sends.push_back({peer, nullptr, 0});
      receives.push_back({peer, nullptr, 0});
    }
  }

  // Whether receives[i] has its peer's data: messages of a pair arrive in order.
  bool is_right(std::size_t i) const {
    const auto value = static_cast<std::byte>(10 * static_cast<int>(i % 3) + receives[i].peer);
    return std::all_of(receives[i].data, receives[i].data + receives[i].bytes,
                       [&](std::byte b) { return b == value; });
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
  for (std::size_t i = 0; i < first.receives.size(); ++i)
    EXPECT_TRUE(first.is_right(i) && second.is_right(i)) << i;
}

TEST(Exchange, refuses_itself_and_strangers) {
  std::byte b{};
  const Message to_me{world().rank(), &b, 1}, to_nobody{world().size(), &b, 1};
  EXPECT_THROW(exchange(world(), {&to_me, 1}, {}, nullptr, "x"), InternalError);
  EXPECT_THROW(exchange(world(), {}, {&to_nobody, 1}, nullptr, "x"), InternalError);
}

// Every rank sends (r + 1) pieces of different lengths to every rank; odd pieces are packed and unpacked,
// even ones are sent in place.
void expect_piecewise_exchange(std::int64_t unit) {
  const auto& all = world();
  const auto length = [&](std::size_t piece) { return unit * static_cast<std::int64_t>(1 + piece % 3); };
  const auto value = [](int from, int to, std::size_t piece) {
    return static_cast<std::byte>(31 * from + 7 * to + static_cast<int>(piece));
  };
  std::vector<PiecewiseMessage> sends, receives;
  for (int peer = 0; peer < all.size(); ++peer) {
    if (peer == all.rank()) continue;
    const auto message = [&](int sender) {
      PiecewiseMessage m{peer, {}};
      for (int piece = 0; piece < 5 * (sender + 1); ++piece) m.pieces.push_back(length(piece));
      return m;
    };
    sends.push_back(message(all.rank()));
    receives.push_back(message(peer));
  }
  std::vector<std::vector<std::vector<std::byte>>> out, in;
  for (const auto& m : sends) {
    out.emplace_back();
    for (std::size_t p = 0; p < m.pieces.size(); ++p)
      out.back().emplace_back(m.pieces[p], value(all.rank(), m.peer, p));
  }
  for (const auto& m : receives) {
    in.emplace_back();
    for (const auto bytes : m.pieces) in.back().emplace_back(bytes);
  }
  PieceWork work;
  work.source = [&](std::size_t m, std::size_t p) { return p % 2 == 0 ? out[m][p].data() : nullptr; };
  work.destination = [&](std::size_t m, std::size_t p) { return p % 2 == 0 ? in[m][p].data() : nullptr; };
  work.pack = [&](std::size_t m, std::size_t p, std::byte* to) {
    std::copy(out[m][p].begin(), out[m][p].end(), to);
  };
  work.unpack = [&](std::size_t m, std::size_t p, const std::byte* from) {
    std::copy_n(from, in[m][p].size(), in[m][p].begin());
  };
  int chores = 3;
  work.meanwhile = [&] { return --chores > 0; };
  exchange_piecewise(all, sends, receives, work, "a test");
  EXPECT_LE(chores, 0) << "the work that was to be done meanwhile";
  for (std::size_t m = 0; m < receives.size(); ++m)
    for (std::size_t p = 0; p < receives[m].pieces.size(); ++p)
      EXPECT_EQ(std::count(in[m][p].begin(), in[m][p].end(), value(receives[m].peer, all.rank(), p)),
                receives[m].pieces[p])
          << "piece " << p << " from " << receives[m].peer;
}

TEST(Piecewise, delivers_pieces_in_order_packed_or_in_place) { expect_piecewise_exchange(100); }
TEST(Piecewise, delivers_more_than_may_be_under_way_at_once) { expect_piecewise_exchange(200'000); }

TEST(Piecewise, refuses_itself) {
  const PiecewiseMessage to_me{world().rank(), {1}};
  EXPECT_THROW(exchange_piecewise(world(), {&to_me, 1}, {}, {}, "x"), InternalError);
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
