// The state in which each rank waits: the record that the watchdog reads, and the flight recorder of the last
// calls.
//
// Every blocking call of this room stands in a Waiting scope. A thread that makes no MPI calls looks at the
// scopes of the host's ranks: when one is older than TESSERA_TIMEOUT, and no rank of the host has computed,
// moved bytes of files or finished a call for so long, every rank of the host prints where it stands and the
// job ends with status 76. A rank that was stopped is named by the others. A rank that works is waited for
// as long as it takes; after TESSERA_TIMEOUT a warning names it. Ranks that wait for each other
// (meeting.hpp) are told at once. What happens on other hosts is not seen here: there TESSERA_TIMEOUT is the
// longest wait.
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
  // call: a literal. FailedJobError where this rank has failed before.
  Waiting(const char* call, const Communicator& comm, std::int64_t bytes);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  bool outermost_ = false;
  int exceptions_before_;  // one that passes through a call leaves the others inside of it
};

// One rank's place, in memory that all ranks of its host map: the watchdog reports from it also for ranks
// that never time out.
struct Place;
std::size_t place_bytes();

// places: one per rank of the host, zeroed; nullptr for this process alone. Called by the environment.
void start_watchdog(int rank, void* places, int host_ranks, int my_place, double timeout_s);
void stop_watchdog();
// Which rank has which place, before any of them starts its watchdog.
void claim_place(void* places, int place, int rank);
// This rank's program has failed: a deadline of its own ends the job, under its own words.
void stay_out_of_circles();
// This rank's program has ended well: it waits for as long as the others live.
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

// Signals write this rank's last calls down from now on, until the watchdog stops (flight_record.hpp).
struct RankPlace;
void keep_flight_record(const RankPlace&, const std::string& folder);

// The last calls of this rank, newest last: "#16 all-gather on devices 0-3, 64 KiB, for x + y at main.cpp:9".
std::string recent_calls(int most = 4);

}  // namespace tessera::comm
