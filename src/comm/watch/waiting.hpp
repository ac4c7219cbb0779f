// The waiting state of each rank, which the watchdog reads, and the flight recorder of the last calls.
//
// Every blocking call of comm is inside a Waiting scope. A thread that makes no MPI calls looks at the scopes
// of the host's ranks: when one is older than TESSERA_TIMEOUT, and no rank of the host has computed, moved
// bytes of files or finished a call for so long, every rank of the host prints its state and the job ends
// with status 76. The others name a rank that was stopped. A working rank is waited for without limit; after
// TESSERA_TIMEOUT a warning names it. A deadlock between ranks (rendezvous.hpp) is reported at once. Other
// hosts are not visible here: for them TESSERA_TIMEOUT is the longest wait.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tessera::comm {

class Communicator;

// The purpose of the calls inside the scope ("matmul at main.cpp:12"): shown by the watchdog and in errors.
// The text must outlive it.
class Purpose {
 public:
  explicit Purpose(std::string_view text);
  ~Purpose();
  Purpose(const Purpose&) = delete;
  Purpose& operator=(const Purpose&) = delete;

 private:
  std::string_view before_;
};
std::string current_purpose();

class Waiting {
 public:
  // call: a literal. FailedJobError if this rank has failed before.
  Waiting(const char* call, const Communicator& comm, std::int64_t bytes);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  bool outermost_ = false;
  int exceptions_before_;  // an exception that passes through a call leaves the other ranks inside it
};

// One rank's place, in memory that all ranks of its host map: the watchdog also reports for ranks that never
// time out themselves.
struct RankStatus;
std::size_t place_bytes();

// places: one per rank of the host, zeroed; nullptr for this process alone. Called by the environment.
void start_watchdog(int rank, void* places, int host_ranks, int my_status, double timeout_s);
void stop_watchdog();
// Assigns a place to a rank; called before any of them starts its watchdog.
void claim_place(void* places, int place, int rank);
// Called when this rank's program has failed: a deadline of its own ends the job, with its own message.
void stay_out_of_circles();
// Called when this rank's program has ended without an error: waits until the other ranks end.
void wait_patiently();

// Calls `expired` on a thread of its own unless it is destroyed within `seconds`.
class Deadline {
 public:
  Deadline(double seconds, std::function<void()> expired);
  ~Deadline();

 private:
  struct Timer;
  std::unique_ptr<Timer> timer_;
};

// From now on signals write this rank's last calls to a file, until the watchdog stops (flight_record.hpp).
struct RankContext;
void keep_flight_record(const RankContext&, const std::string& folder);

// The last calls of this rank, newest last: "#16 all-gather on devices 0-3, 64 KiB, for x + y at main.cpp:9".
std::string recent_calls(int most = 4);
// "waits since 3 s in #16 agreement on devices 0-3, for sum" if this rank has been in that call for so long,
// else "". On any thread.
std::string long_wait(double least_s);

}  // namespace tessera::comm
