// The network of a machine as queues: a host's link out and in, and the links of groups of hosts above it.
// Messages occupy a link one after the other in the order of their arrival; a message passes on as soon as
// its first byte has.
//
//   rank -> host out -> group out ... group in -> host in -> rank        between hosts
//   rank -> rank                                     inside a host: the receiver copies one after the other
#pragma once
#include <cstdint>
#include <vector>

#include "base/rates.hpp"

namespace tessera {

// A link that was used, for the report.
struct LinkLoad {
  int level = 0;  // 0: a host's own; above: of the groups of the topology's levels
  int number = 0;
  bool is_out = true;
  double busy_s = 0, bytes = 0;
};

class NetworkQueues {
 public:
  NetworkQueues(const Rates&, int ranks);

  int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  int hosts() const { return hosts_; }
  std::size_t links() const { return queues_.size(); }
  // A message on its way: the link that it left last, and when its first and last byte get to the next one.
  // Messages reach the next link in the order in which they left the last one: head_s never falls.
  struct Passage {
    int from_host = 0, to_host = 0;
    std::int8_t hop = 0, climbs = 0;  // climbs: the number of levels that it goes up
    std::uint32_t link = 0;
    double head_s = 0, tail_s = 0, bytes = 0;
  };
  // Leaves a host at the time; `left_s` is set to the end of the host's sending. `message_bytes`: of the
  // whole message, of which this may be a part.
  Passage leave(int from_rank, int to_rank, double bytes, double message_bytes, double now_s, double& left_s);
  // Passes one link at its head's time. True: it has arrived at tail_s.
  bool pass(Passage&);
  // The time of arrival of what a rank of the receiver's own host sends.
  double arrive_inside(int to_rank, double bytes, double now_s);

  std::vector<LinkLoad> loads() const;

 private:
  struct Queue {
    double free_s = 0, busy_s = 0, bytes = 0;
    // Occupies the link from the time on; returns the start.
    double occupy(double now_s, double bytes, double bytes_per_s);
  };
  struct Level {
    double bytes_per_s, latency_s;  // latency_s: added on the way out
    std::vector<int> number;        // of the link, by host
    std::size_t links;              // each way
    std::size_t out, in;            // the first link's place among the queues
  };
  int levels_between(int from_host, int to_host) const;

  Rates rates_;
  int ranks_per_host_, hosts_;
  std::vector<int> host_of_;   // by rank
  std::vector<Level> levels_;  // hosts first
  std::vector<Queue> queues_;
  std::vector<Queue> copies_;  // by rank, of what comes from its own host
};

}  // namespace tessera
