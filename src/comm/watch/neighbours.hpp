// What a rank that waits sees of the other ranks of its host. For src/comm/watch alone.
#pragma once
#include <cstdint>
#include <string>

#include "comm/watch/places.hpp"

namespace tessera::comm {

std::int64_t now_ns();  // the coarse monotonic clock: milliseconds are exact enough here
std::string seconds_since(std::int64_t start_ns);

struct Neighbours {
  const Place* places = nullptr;
  int count = 0;
  const Place* mine = nullptr;

  // A heart that does not beat: the process was stopped, or the machine gives it no time.
  bool somebody_is_silent(std::int64_t for_ns) const;
  // Silent ranks cannot speak for themselves: the first of the others does. "": there are none, or another
  // one speaks.
  std::string describe_silent(std::int64_t for_ns) const;
  // When one of them was last seen to go on.
  std::int64_t last_progress() const;
  // Why somebody's wait was too long, if it was: Place::expired.
  std::int64_t expired() const;
  // Somebody has been in the program's own code for so long, counted from `since` at the earliest.
  bool somebody_works_longer_than(std::int64_t limit_ns, std::int64_t since) const;
  // Somebody has waited for so long in an MPI call of the program's own.
  bool somebody_waits_elsewhere(std::int64_t for_ns) const;
  // "rank 0 (process 12), which works in the program's own code since 10.0 s": those who are not waiting
  // here. "" where there are none, or where another rank waits too and speaks.
  std::string describe_those_waited_for() const;
};

}  // namespace tessera::comm
