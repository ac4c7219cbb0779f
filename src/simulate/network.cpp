#include "simulate/network.hpp"

#include <algorithm>

namespace tessera {

double NetworkQueues::Queue::occupy(double now_s, double more, double bytes_per_s) {
  const double start_s = std::max(now_s, free_s), seconds = more / bytes_per_s;
  free_s = start_s + seconds;
  busy_s += seconds;
  bytes += more;
  return start_s;
}

NetworkQueues::NetworkQueues(const Rates& rates, int ranks)
    : rates_(rates),
      ranks_per_host_(rates.topology.ranks_per_host > 0 ? rates.topology.ranks_per_host : std::max(1, ranks)),
      hosts_((ranks + ranks_per_host_ - 1) / ranks_per_host_) {
  const double delivered = rates_.topology.delivered(hosts_);
  rates_.between.bytes_per_s *= delivered;
  const auto add = [&](int hosts_of_a_link, double bytes_per_s, double latency_s) {
    const auto links = static_cast<std::size_t>((hosts_ + hosts_of_a_link - 1) / hosts_of_a_link);
    Level level{bytes_per_s, latency_s, {}, links, queues_.size(), queues_.size() + links};
    for (int host = 0; host < hosts_; ++host) level.number.push_back(host / hosts_of_a_link);
    queues_.resize(queues_.size() + 2 * links);
    levels_.push_back(std::move(level));
  };
  add(1, rates_.between.bytes_per_s, rates_.between.latency_s);
  for (int n = 0; n < rates_.topology.levels; ++n) {
    const auto& level = rates_.topology.level[static_cast<std::size_t>(n)];
    add(level.hosts, level.bytes_per_s * delivered, level.latency_s);
  }
  for (int rank = 0; rank < ranks; ++rank) host_of_.push_back(rank / ranks_per_host_);
  copies_.resize(static_cast<std::size_t>(ranks));
}

double NetworkQueues::arrive_inside(int to_rank, double bytes, double now_s) {
  auto& queue = copies_[static_cast<std::size_t>(to_rank)];
  queue.occupy(now_s, bytes, rates_.inside.bytes_per_s);
  return queue.free_s + rates_.inside.latency_s;
}

// The number of levels that a message climbs.
int NetworkQueues::levels_between(int from_host, int to_host) const {
  for (auto level = levels_.size() - 1; level > 0; --level) {
    const auto& number = levels_[level].number;
    if (number[static_cast<std::size_t>(from_host)] != number[static_cast<std::size_t>(to_host)])
      return static_cast<int>(level);
  }
  return 0;
}

NetworkQueues::Passage NetworkQueues::leave(int from_rank, int to_rank, double bytes, double message_bytes,
                                            double now_s, double& left_s) {
  const int from = host_of(from_rank), to = host_of(to_rank);
  Passage passage{from,
                  to,
                  1,
                  static_cast<std::int8_t>(levels_between(from, to)),
                  static_cast<std::uint32_t>(levels_[0].out + static_cast<std::size_t>(from)),
                  0,
                  0,
                  bytes};
  auto& queue = queues_[passage.link];
  if (rates_.topology.asks_first(message_bytes)) now_s += 2 * rates_.between.latency_s;
  const double start_s = queue.occupy(now_s, bytes, rates_.between.bytes_per_s);
  left_s = queue.free_s;
  passage.head_s = start_s + rates_.between.latency_s;
  passage.tail_s = queue.free_s + rates_.between.latency_s;
  return passage;
}

// Hops 1 .. n climb, n + 1 .. 2n descend, 2n + 1 is the receiver's host.
bool NetworkQueues::pass(Passage& p) {
  const bool is_last = p.hop == 2 * p.climbs + 1, climbs = p.hop <= p.climbs;
  const auto& level = levels_[static_cast<std::size_t>(climbs ? p.hop : 2 * p.climbs + 1 - p.hop)];
  const int host = climbs ? p.from_host : p.to_host;
  p.link = static_cast<std::uint32_t>((climbs ? level.out : level.in) +
                                      static_cast<std::size_t>(level.number[static_cast<std::size_t>(host)]));
  auto& queue = queues_[p.link];
  const double start_s = queue.occupy(p.head_s, p.bytes, level.bytes_per_s);
  const double latency_s = climbs ? level.latency_s : 0;
  p.tail_s = std::max(p.tail_s, queue.free_s) + latency_s;
  p.head_s = start_s + latency_s;
  ++p.hop;
  return is_last;
}

std::vector<LinkLoad> NetworkQueues::loads() const {
  std::vector<LinkLoad> loads;
  for (const bool is_out : {true, false})
    for (std::size_t n = 0; n < levels_.size(); ++n)
      for (std::size_t link = 0; link < levels_[n].links; ++link) {
        const auto& queue = queues_[(is_out ? levels_[n].out : levels_[n].in) + link];
        if (queue.bytes > 0)
          loads.push_back({static_cast<int>(n), static_cast<int>(link), is_out, queue.busy_s, queue.bytes});
      }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.busy_s > b.busy_s; });
  return loads;
}

}  // namespace tessera
