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
  for (auto& level : rates_.topology.level) level.bytes_per_s *= delivered;
  out_.emplace_back(hosts_);
  for (int level = 0; level < rates_.topology.levels; ++level) {
    const int size = rates_.topology.level[static_cast<std::size_t>(level)].hosts;
    out_.emplace_back((hosts_ + size - 1) / size);
  }
  in_ = out_;
  copies_.resize(static_cast<std::size_t>(ranks));
}

double NetworkQueues::arrive_inside(int to_rank, double bytes, double now_s) {
  auto& queue = copies_[static_cast<std::size_t>(to_rank)];
  queue.occupy(now_s, bytes, rates_.inside.bytes_per_s);
  return queue.free_s + rates_.inside.latency_s;
}

// The number of levels that a message climbs.
int NetworkQueues::levels_between(int from_host, int to_host) const {
  for (int level = rates_.topology.levels; level > 0; --level) {
    const int size = rates_.topology.level[static_cast<std::size_t>(level - 1)].hosts;
    if (from_host / size != to_host / size) return level;
  }
  return 0;
}

NetworkQueues::Passage NetworkQueues::leave(int from_rank, int to_rank, double bytes, double message_bytes,
                                            double now_s, double& left_s) {
  Passage passage{host_of(from_rank), host_of(to_rank), 1, 0, 0, bytes};
  auto& queue = out_[0][static_cast<std::size_t>(passage.from_host)];
  if (rates_.topology.asks_first(message_bytes)) now_s += 2 * rates_.between.latency_s;
  const double start_s = queue.occupy(now_s, bytes, rates_.between.bytes_per_s);
  left_s = queue.free_s;
  passage.head_s = start_s + rates_.between.latency_s;
  passage.tail_s = queue.free_s + rates_.between.latency_s;
  return passage;
}

// Hops 1 .. n climb, n + 1 .. 2n descend, 2n + 1 is the receiver's host.
bool NetworkQueues::pass(Passage& p) {
  const int up = levels_between(p.from_host, p.to_host);
  const bool is_last = p.hop == 2 * up + 1, climbs = p.hop <= up;
  const int level = is_last ? 0 : climbs ? p.hop : 2 * up + 1 - p.hop;
  const auto above = static_cast<std::size_t>(std::max(level - 1, 0));
  const int host = climbs ? p.from_host : p.to_host;
  const int number = level == 0 ? host : host / rates_.topology.level[above].hosts;
  const double bytes_per_s =
      level == 0 ? rates_.between.bytes_per_s : rates_.topology.level[above].bytes_per_s;
  auto& queue = (climbs ? out_ : in_)[static_cast<std::size_t>(level)][static_cast<std::size_t>(number)];
  const double start_s = queue.occupy(p.head_s, p.bytes, bytes_per_s);
  const double latency_s = climbs ? rates_.topology.level[above].latency_s : 0;
  p.tail_s = std::max(p.tail_s, start_s + p.bytes / bytes_per_s) + latency_s;
  p.head_s = start_s + latency_s;
  ++p.hop;
  return is_last;
}

std::vector<LinkLoad> NetworkQueues::loads() const {
  std::vector<LinkLoad> loads;
  for (const auto* side : {&out_, &in_})
    for (std::size_t level = 0; level < side->size(); ++level)
      for (std::size_t n = 0; n < (*side)[level].size(); ++n) {
        const auto& queue = (*side)[level][n];
        if (queue.bytes > 0)
          loads.push_back(
              {static_cast<int>(level), static_cast<int>(n), side == &out_, queue.busy_s, queue.bytes});
      }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.busy_s > b.busy_s; });
  return loads;
}

}  // namespace tessera
