// The page of a host: one place per rank, read by the watchdogs of all of them. For src/comm/watch alone.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/watch/rendezvous.hpp"

namespace tessera::comm {

// Times are of the monotonic clock, which all processes of a host share.
struct alignas(64) RankStatus {
  std::atomic<std::int64_t> waiting_since_ns;  // 0: computing
  std::atomic<std::int64_t> expired;           // 1: this rank's wait was too long; 2: the work of a peer was
  std::atomic<std::int64_t> heartbeat_ns;      // the last run of its watchdog: the process is not stopped
  std::atomic<std::int64_t> progress_ns;       // time of the last kernel, file transfer or finished call
  std::atomic<std::int64_t> last_call_ns;      // time of the last call into the library
  std::atomic<std::int64_t>
      own_mpi_since_ns;  // start of an MPI call of the program's own that it is inside of; 0: none
  std::array<char, 24> own_mpi_call;
  std::atomic<std::int64_t> process, rank;
  Attendance attendance;
};

RankStatus& my_status();

// A call of the MPI library that waits for other ranks. Recorded if the session's thread makes it outside of
// comm's own calls, while the runtime is up.
class OwnMpiCall {
 public:
  explicit OwnMpiCall(const char* name);
  ~OwnMpiCall();
  OwnMpiCall(const OwnMpiCall&) = delete;
  OwnMpiCall& operator=(const OwnMpiCall&) = delete;

 private:
  RankStatus* place_ = nullptr;
};
HostRanks host_ranks_of(const std::vector<int>& device_ids);  // the members on this host

// Publishes a description of what this rank is about to do, which its watchdog calls if the rank waits for
// ever.
void set_intention(const std::function<std::string()>* describe);
// True after stay_out_of_circles().
bool stays_out_of_circles();

}  // namespace tessera::comm
