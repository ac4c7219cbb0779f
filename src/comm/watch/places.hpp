// The page of a host: one place per rank, which the watchdogs of all of them read. For src/comm/watch alone.
#pragma once
#include <array>
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
  std::atomic<std::int64_t> expired;           // 1: this rank's wait was too long; 2: what it waits for was
  std::atomic<std::int64_t> heartbeat_ns;      // its watchdog has run: the process is not stopped
  std::atomic<std::int64_t> progress_ns;       // it has computed, moved bytes of files, or finished a call
  std::atomic<std::int64_t> last_call_ns;      // it was inside of the library
  std::atomic<std::int64_t>
      own_mpi_since_ns;  // it is inside of an MPI call of the program's own; 0: it is not
  std::array<char, 24> own_mpi_call;
  std::atomic<std::int64_t> process, rank;
  Attendance attendance;
};

Place& my_place();

// A call of the MPI library that waits for others. Seen where the session's thread makes it outside of this
// room's calls, while the runtime is up.
class OwnMpiCall {
 public:
  explicit OwnMpiCall(const char* name);
  ~OwnMpiCall();
  OwnMpiCall(const OwnMpiCall&) = delete;
  OwnMpiCall& operator=(const OwnMpiCall&) = delete;

 private:
  Place* place_ = nullptr;
};
PlaceSet places_of(const std::vector<int>& device_ids);  // those of this host

// Announces what this rank is about to do, for its watchdog to ask while the rank waits for ever.
void set_intention(const std::function<std::string()>* describe);
// After stay_out_of_circles().
bool stays_out_of_circles();

}  // namespace tessera::comm
