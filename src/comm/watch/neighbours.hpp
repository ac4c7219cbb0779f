// The view of a waiting rank on the other ranks of its host. For src/comm/watch alone.
#pragma once
#include <cstdint>
#include <string>

#include "comm/watch/rank_status.hpp"

namespace tessera::comm {

std::int64_t now_ns();  // the coarse monotonic clock, precise to milliseconds
std::string seconds_since(std::int64_t start_ns);

struct HostNeighbours {
  const RankStatus* places = nullptr;
  int count = 0;
  const RankStatus* mine = nullptr;

  // Whether some rank's heartbeat has stopped: its process was stopped, or gets no CPU time.
  bool somebody_is_silent(std::int64_t for_ns) const;
  // Describes silent ranks, which cannot report themselves: the first of the others does. "": there are none,
  // or another rank reports.
  std::string describe_silent(std::int64_t for_ns) const;
  // The time at which one of them last made progress.
  std::int64_t last_progress() const;
  // The reason why some rank's wait was too long (RankStatus::expired); 0: none was.
  std::int64_t expired() const;
  // Whether some rank has been in the program's own code for longer than limit_ns, counted from `since` at
  // the earliest.
  bool somebody_works_longer_than(std::int64_t limit_ns, std::int64_t since) const;
  // Whether some rank has waited longer than for_ns in an MPI call of the program's own.
  bool somebody_waits_elsewhere(std::int64_t for_ns) const;
  // "rank 0 (process 12), which works in the program's own code since 10.0 s": the ranks that are not waiting
  // in the library. "" if there are none, or if an earlier rank waits too and reports.
  std::string describe_those_waited_for() const;
};

}  // namespace tessera::comm
