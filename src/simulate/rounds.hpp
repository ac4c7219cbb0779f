// Collectives as rounds of messages, the algorithms of comm: which rank sends how much to whom in each round,
// as data. A round ends for a rank when what it awaits has arrived and what it sends has left.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tessera {

struct SimulatedMessage {
  int to = 0;  // rank
  double bytes = 0;
  int messages = 1;    // that travel behind each other as one
  int arrives_in = 0;  // the receiver's round
};

class Rounds {
 public:
  virtual ~Rounds() = default;
  // A rank's part in a round: its messages, and the number of those that it awaits.
  struct Round {
    std::vector<SimulatedMessage> sends;
    int receives = 0;
    int parts = 1;              // that each awaited message comes in
    double bytes_combined = 0;  // of terms that are added when they have arrived
  };
  virtual int rounds(int rank) const = 0;  // 0: the rank takes no part
  virtual void round(int rank, int number, Round&) const = 0;
};
using RoundsPtr = std::shared_ptr<const Rounds>;

// Disjoint ordered groups of ranks that communicate at the same time.
struct RankGroups {
  explicit RankGroups(int ranks) : group_of(static_cast<std::size_t>(ranks), -1), place_of(group_of) {}
  void add(std::vector<int> members);
  std::vector<std::vector<int>> members;
  std::vector<int> group_of, place_of;  // by rank; -1: none
  std::size_t largest() const;
};
using GroupsPtr = std::shared_ptr<const RankGroups>;

// p - 1 rounds in which the member m sends to m + k and receives from m - k. `added`: what arrives is added.
RoundsPtr pairwise_rounds(GroupsPtr, double block_bytes, bool added);
// p - 1 rounds around the ring; twice as many for an all-reduce.
RoundsPtr ring_rounds(GroupsPtr, double block_bytes, bool reduces);
// All-reduce of a whole value: partners at distance 1, 2, 4 ...; the ranks beyond a power of two fold first.
RoundsPtr doubling_rounds(GroupsPtr, double bytes);
// Binomial tree from the member `root`, in as many segments.
RoundsPtr broadcast_rounds(GroupsPtr, double bytes, const std::vector<int>& root_of_group, int segments);
// From the member `root` around the ring behind it; the first one of the ring only receives.
RoundsPtr ring_broadcast_rounds(GroupsPtr, double bytes, int root);
// A block from the member `root` to each other one.
RoundsPtr scatter_rounds(GroupsPtr, double block_bytes, int root);
// Everything at once, as a plan of exchange lists it.
struct PlannedMessages {
  std::vector<SimulatedMessage> sends;
  int receives = 0;
};
RoundsPtr exchange_rounds(std::function<PlannedMessages(int rank)>);

// ---- groups over several hosts: each block crosses between two hosts once (comm/collectives/two_level) ----
enum class HostRounds { gather, reduce_scatter, all_reduce, through_leaders };
RoundsPtr host_rounds(GroupsPtr, const std::function<int(int rank)>& host_of, HostRounds, double block_bytes);

}  // namespace tessera
