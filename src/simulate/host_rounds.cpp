// Collectives of groups over several hosts, as comm/collectives/two_level carries them out.
#include <algorithm>
#include <map>
#include <utility>

#include "comm/host/hosts.hpp"
#include "simulate/rounds.hpp"

namespace tessera {
namespace {

// The members of a group by host, and each member's duties: blocks of members elsewhere that cross by it.
struct HostsOfGroup : comm::HostGroups {
  // By host and place there: how many members elsewhere have this one as their agent there.
  std::vector<std::vector<int>> duties;

  int size_of(int h) const { return static_cast<int>(members[static_cast<std::size_t>(h)].size()); }
  int duties_of(int member) const {
    const auto m = static_cast<std::size_t>(member);
    return duties[static_cast<std::size_t>(host[m])][static_cast<std::size_t>(place[m])];
  }
};

HostsOfGroup hosts_of(const std::vector<int>& ranks, const std::function<int(int)>& host_of) {
  HostsOfGroup found;
  std::map<int, int> number;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const int h = number.emplace(host_of(ranks[place]), static_cast<int>(number.size())).first->second;
    if (h == found.hosts()) found.members.emplace_back();
    auto& there = found.members[static_cast<std::size_t>(h)];
    found.host.push_back(h), found.place.push_back(static_cast<int>(there.size()));
    there.push_back(static_cast<int>(place));
  }
  for (const auto& there : found.members) found.duties.emplace_back(there.size());
  for (std::size_t place = 0; place < ranks.size(); ++place)
    for (int h = 0; h < found.hosts(); ++h)
      if (h != found.host[place]) {
        auto& counts = found.duties[static_cast<std::size_t>(h)];
        ++counts[static_cast<std::size_t>(found.place[place]) % counts.size()];
      }
  return found;
}

class ByHosts final : public Rounds {
 public:
  ByHosts(GroupsPtr groups, const std::function<int(int)>& host_of, HostRounds kind, double bytes)
      : groups_(std::move(groups)), kind_(kind), bytes_(bytes) {
    for (const auto& members : groups_->members) hosts_.push_back(hosts_of(members, host_of));
  }

  int rounds(int rank) const override {
    if (groups_->group_of[static_cast<std::size_t>(rank)] < 0) return 0;
    return kind_ == HostRounds::all_reduce ? 4 : kind_ == HostRounds::through_leaders ? 3 : 2;
  }
  void round(int rank, int number, Round& out) const override {
    const auto group = static_cast<std::size_t>(groups_->group_of[static_cast<std::size_t>(rank)]);
    const At at{hosts_[group], groups_->members[group], groups_->place_of[static_cast<std::size_t>(rank)],
                number, out};
    if (kind_ == HostRounds::through_leaders) return leaders(at);
    const bool gathers = kind_ == HostRounds::gather || number >= 2;
    const int part = number % 2;
    if (gathers)
      part == 0 ? spread(at) : forward(at);
    else
      part == 0 ? add_inside(at) : add_across(at);
  }

 private:
  struct At {
    const HostsOfGroup& hosts;
    const std::vector<int>& ranks;
    int place, number;
    Round& out;
    int host() const { return hosts.host[static_cast<std::size_t>(place)]; }
    int turn() const { return hosts.place[static_cast<std::size_t>(place)]; }
    const std::vector<int>& mates() const { return hosts.members[static_cast<std::size_t>(host())]; }
    int others() const { return static_cast<int>(mates().size()) - 1; }
    void send(int to_place, double bytes, int messages = 1) const {
      out.sends.push_back({ranks[static_cast<std::size_t>(to_place)], bytes, messages, number});
    }
  };

  // Own block to one rank of every other host, and to this host's.
  void spread(const At& at) const {
    at.hosts.for_others(at.host(), [&](int h) { at.send(at.hosts.partner(h, at.turn()), bytes_); });
    for (const int mate : at.mates())
      if (mate != at.place) at.send(mate, bytes_);
    at.out.receives = at.others() + at.hosts.duties_of(at.place);
  }
  void forward(const At& at) const {
    const int duties = at.hosts.duties_of(at.place);
    for (const int mate : at.mates()) {
      if (mate == at.place) continue;
      if (duties > 0) at.send(mate, duties * bytes_, duties);
      at.out.receives += at.hosts.duties_of(mate) > 0 ? 1 : 0;
    }
  }
  // Terms to the mate that adds a block for this host.
  void add_inside(const At& at) const {
    for (const int mate : at.mates()) {
      if (mate == at.place) continue;
      const int blocks = at.hosts.duties_of(mate) + 1;
      at.send(mate, blocks * bytes_, blocks);
    }
    at.out.receives = at.others();
    at.out.bytes_combined = at.others() * (at.hosts.duties_of(at.place) + 1) * bytes_;
  }
  // This host's sums to the blocks' ranks: the way of `spread`, backwards.
  void add_across(const At& at) const {
    at.hosts.for_others(at.host(), [&](int h) {
      const int here = static_cast<int>(at.mates().size());
      for (int turn = at.turn(); turn < at.hosts.size_of(h); turn += here)
        at.send(at.hosts.partner(h, turn), bytes_);
    });
    at.out.receives = at.hosts.hosts() - 1;
    at.out.bytes_combined = at.out.receives * bytes_;
  }
  // To the first rank of a host, between these, and back.
  void leaders(const At& at) const {
    const bool leads = at.turn() == 0;
    if (at.number == 0 && !leads) at.send(at.hosts.partner(at.host(), 0), bytes_);
    if (at.number == 0 && leads) at.out.receives = at.others(), at.out.bytes_combined = at.others() * bytes_;
    if (at.number == 1 && leads) {
      at.hosts.for_others(at.host(), [&](int h) { at.send(at.hosts.partner(h, 0), bytes_); });
      at.out.receives = at.hosts.hosts() - 1;
      at.out.bytes_combined = at.out.receives * bytes_;
    }
    if (at.number == 2 && leads)
      for (const int mate : at.mates())
        if (mate != at.place) at.send(mate, bytes_);
    if (at.number == 2 && !leads) at.out.receives = 1;
  }

  GroupsPtr groups_;
  HostRounds kind_;
  double bytes_;
  std::vector<HostsOfGroup> hosts_;
};

}  // namespace

RoundsPtr host_rounds(GroupsPtr groups, const std::function<int(int rank)>& host_of, HostRounds kind,
                      double block_bytes) {
  return std::make_shared<ByHosts>(std::move(groups), host_of, kind, block_bytes);
}

}  // namespace tessera
