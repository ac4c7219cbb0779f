#include "simulate/rounds.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera {

void RankGroups::add(std::vector<int> ranks) {
  for (std::size_t m = 0; m < ranks.size(); ++m) {
    group_of[static_cast<std::size_t>(ranks[m])] = static_cast<int>(members.size());
    place_of[static_cast<std::size_t>(ranks[m])] = static_cast<int>(m);
  }
  members.push_back(std::move(ranks));
}
std::size_t RankGroups::largest() const {
  std::size_t most = 0;
  for (const auto& group : members) most = std::max(most, group.size());
  return most;
}

namespace {

// A collective inside of each group, by places.
class GroupRounds : public Rounds {
 public:
  explicit GroupRounds(GroupsPtr groups) : groups_(std::move(groups)) {}
  int rounds(int rank) const override {
    const int group = groups_->group_of[static_cast<std::size_t>(rank)];
    return group < 0 ? 0 : rounds_of(size_of(group));
  }
  void round(int rank, int number, Round& out) const override {
    const int group = groups_->group_of[static_cast<std::size_t>(rank)];
    fill(group, groups_->place_of[static_cast<std::size_t>(rank)], number, out);
  }

 protected:
  virtual int rounds_of(int members) const = 0;
  virtual void fill(int group, int place, int number, Round&) const = 0;
  int size_of(int group) const {
    return static_cast<int>(groups_->members[static_cast<std::size_t>(group)].size());
  }
  int member(int group, int place) const {
    return groups_->members[static_cast<std::size_t>(group)][static_cast<std::size_t>(place)];
  }
  void send(Round& out, int group, int place, double bytes, int number) const {
    out.sends.push_back({member(group, place), bytes, 1, number});
  }

 private:
  GroupsPtr groups_;
};

class Pairwise final : public GroupRounds {
 public:
  Pairwise(GroupsPtr groups, double bytes, bool added)
      : GroupRounds(std::move(groups)), bytes_(bytes), added_(added) {}

 private:
  int rounds_of(int members) const override { return members - 1; }
  void fill(int group, int place, int number, Round& out) const override {
    send(out, group, (place + number + 1) % size_of(group), bytes_, number);
    out.receives = 1;
    out.bytes_combined = added_ ? bytes_ : 0;
  }
  double bytes_;
  bool added_;
};

class Ring final : public GroupRounds {
 public:
  Ring(GroupsPtr groups, double bytes, bool reduces)
      : GroupRounds(std::move(groups)), bytes_(bytes), reduces_(reduces) {}

 private:
  int rounds_of(int members) const override { return (reduces_ ? 2 : 1) * (members - 1); }
  void fill(int group, int place, int number, Round& out) const override {
    send(out, group, (place + 1) % size_of(group), bytes_, number);
    out.receives = 1;
    out.bytes_combined = reduces_ && number < size_of(group) - 1 ? bytes_ : 0;
  }
  double bytes_;
  bool reduces_;
};

//   6 members:   4 -> 0, 5 -> 1     0 <-> 1, 2 <-> 3     0 <-> 2, 1 <-> 3     0 -> 4, 1 -> 5
class Doubling final : public GroupRounds {
 public:
  Doubling(GroupsPtr groups, double bytes) : GroupRounds(std::move(groups)), bytes_(bytes) {}

 private:
  static int whole(int members) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(members))); }
  static int steps(int members) { return std::countr_zero(static_cast<unsigned>(whole(members))); }
  int rounds_of(int members) const override { return members == 1 ? 0 : steps(members) + 2; }
  void fill(int group, int place, int number, Round& out) const override {
    const int p = size_of(group), w = whole(p), last = steps(p) + 1;
    if (number == 0 || number == last) {
      const bool is_extra = place >= w, has_extra = place + w < p;
      if (number == 0 ? is_extra : has_extra)
        send(out, group, is_extra ? place - w : place + w, bytes_, number);
      out.receives = (number == 0 ? has_extra : is_extra) ? 1 : 0;
      out.bytes_combined = number == 0 && has_extra ? bytes_ : 0;
    } else if (place < w) {
      send(out, group, place ^ (1 << (number - 1)), bytes_, number);
      out.receives = 1;
      out.bytes_combined = bytes_;
    }
  }
  double bytes_;
};

// Round 2 s: segment s arrives; round 2 s + 1: it is sent on, to the farthest first.
class BinomialTree final : public GroupRounds {
 public:
  BinomialTree(GroupsPtr groups, double bytes, std::vector<int> roots, int segments)
      : GroupRounds(std::move(groups)),
        bytes_(bytes / segments),
        roots_(std::move(roots)),
        segments_(segments) {}

 private:
  int rounds_of(int members) const override { return members == 1 ? 0 : 2 * segments_; }
  void fill(int group, int place, int number, Round& out) const override {
    const int p = size_of(group), root = roots_[static_cast<std::size_t>(group)];
    const int me = (place - root + p) % p;
    if (number % 2 == 0) {
      out.receives = me == 0 ? 0 : 1;
      return;
    }
    const int top = static_cast<int>(std::bit_ceil(static_cast<unsigned>(p)));
    for (int distance = me == 0 ? top / 2 : (me & -me) / 2; distance > 0; distance /= 2)
      if (me + distance < p) send(out, group, (me + distance + root) % p, bytes_, number - 1);
  }
  double bytes_;
  std::vector<int> roots_;
  int segments_;
};

//   root -> 1, root -> 2 -> 3 -> 4 ...      round 0: it arrives; round 1: it is sent on
class RingBroadcast final : public GroupRounds {
 public:
  RingBroadcast(GroupsPtr groups, double bytes, int root)
      : GroupRounds(std::move(groups)), bytes_(bytes), root_(root) {}

 private:
  int rounds_of(int members) const override { return members == 1 ? 0 : 2; }
  void fill(int group, int place, int number, Round& out) const override {
    const int p = size_of(group), me = (place - root_ + p) % p;
    if (number == 0) {
      out.receives = me == 0 ? 0 : 1;
      return;
    }
    if (me == 0) send(out, group, (root_ + 1) % p, bytes_, 0);
    const int next = me == 0 ? 2 : me + 1;
    if (me != 1 && next < p) send(out, group, (root_ + next) % p, bytes_, 0);
  }
  double bytes_;
  int root_;
};

class Scatter final : public GroupRounds {
 public:
  Scatter(GroupsPtr groups, double bytes, int root)
      : GroupRounds(std::move(groups)), bytes_(bytes), root_(root) {}

 private:
  int rounds_of(int members) const override { return members == 1 ? 0 : 1; }
  void fill(int group, int place, int, Round& out) const override {
    out.receives = place == root_ ? 0 : 1;
    for (int other = 1; place == root_ && other < size_of(group); ++other)
      send(out, group, (root_ + other) % size_of(group), bytes_, 0);
  }
  double bytes_;
  int root_;
};

// All messages of an exchange are under way at once and share the links: each goes in as many parts by turns.
class Exchange final : public Rounds {
 public:
  static constexpr int passes = 4;

  explicit Exchange(std::function<PlannedMessages(int)> plan) : plan_(std::move(plan)) {}
  int rounds(int) const override { return 1; }
  void round(int rank, int, Round& out) const override {
    const auto planned = plan_(rank);
    for (int pass = 0; pass < passes; ++pass)
      for (auto message : planned.sends) {
        message.bytes /= passes;
        message.messages = pass == 0 ? message.messages : 0;
        out.sends.push_back(message);
      }
    out.receives = planned.receives * passes;
    out.parts = passes;
  }

 private:
  std::function<PlannedMessages(int)> plan_;
};

}  // namespace

RoundsPtr pairwise_rounds(GroupsPtr groups, double block_bytes, bool added) {
  return std::make_shared<Pairwise>(std::move(groups), block_bytes, added);
}
RoundsPtr ring_rounds(GroupsPtr groups, double block_bytes, bool reduces) {
  return std::make_shared<Ring>(std::move(groups), block_bytes, reduces);
}
RoundsPtr doubling_rounds(GroupsPtr groups, double bytes) {
  return std::make_shared<Doubling>(std::move(groups), bytes);
}
RoundsPtr broadcast_rounds(GroupsPtr groups, double bytes, const std::vector<int>& root_of_group,
                           int segments) {
  return std::make_shared<BinomialTree>(std::move(groups), bytes, root_of_group, segments);
}
RoundsPtr ring_broadcast_rounds(GroupsPtr groups, double bytes, int root) {
  return std::make_shared<RingBroadcast>(std::move(groups), bytes, root);
}
RoundsPtr scatter_rounds(GroupsPtr groups, double block_bytes, int root) {
  return std::make_shared<Scatter>(std::move(groups), block_bytes, root);
}
RoundsPtr exchange_rounds(std::function<PlannedMessages(int rank)> plan) {
  return std::make_shared<Exchange>(std::move(plan));
}

}  // namespace tessera
