// The page of a host: one place per rank, which the watchdogs of all of them read. For src/comm/watch alone.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/watch/meeting.hpp"

namespace tessera::comm {

// Times are of the monotonic clock, which all processes of a host share.
struct alignas(64) Place {
  std::atomic<std::int64_t> waiting_since_ns;  // 0: computing
  std::atomic<std::int64_t> expired;           // 1: this rank's wait was too long
  std::atomic<std::int64_t> heartbeat_ns;      // its watchdog has run: the process is not stopped
  std::atomic<std::int64_t> progress_ns;       // it has computed, moved bytes of files, or finished a call
  std::atomic<std::int64_t> process, rank;
  Attendance attendance;
};

Place& my_place();
PlaceSet places_of(const std::vector<int>& device_ids);  // those of this host

// What this rank is about to do, for its watchdog to ask while the rank stands in a meeting for ever.
void set_intention(const std::function<std::string()>* describe);
// After stay_out_of_circles().
bool stays_out_of_circles();

}  // namespace tessera::comm
