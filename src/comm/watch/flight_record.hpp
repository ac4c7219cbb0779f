// The flight record: each rank's last calls as a file, written when a wait was too long, when the process
// crashes, and on SIGUSR2; and a diagnosis from the files of all ranks.
//
//   mpirun ... &  kill -USR2 $!      each rank on each host writes tessera-flight/rank-0003.txt and continues
//   tessera doctor tessera-flight    which ranks differ, wait, compute or are gone
//
// Writing is async-signal-safe: no allocation, no locks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/watch/recorder.hpp"

namespace tessera::comm {

struct RankContext {
  int rank = 0, ranks = 1;
  std::string host;
  std::uint64_t job = 0;  // equal on all ranks of a job, different from every other job's
};

// Installs the signal handlers for this recorder, until disarm. `folder`: TESSERA_FLIGHT_RECORD; if "", only
// SIGUSR2 writes, to ./tessera-flight. A handler of SIGUSR2 that the application has set is left in place.
void arm_flight_record(const Recorder&, const RankContext&, const std::string& folder);
void disarm_flight_record();
// Does nothing if no folder was named. reason: "time-out".
void write_flight_record(const char* reason) noexcept;

// ---- reading ----

struct FlightCall {
  std::int64_t number = 0, bytes = 0;
  double start_s = 0, stop_s = 0;  // by the rank's own clock; stop 0: still running
  std::string what, group, purpose;
};
struct FlightRecord {
  int rank = 0, ranks = 1, process = 0;
  std::string host, reason, job;
  double clock_s = 0;  // time of writing, by the monotonic clock of the host
  double date_s = 0;   // by the calendar
  std::vector<FlightCall> calls;
  bool waits() const { return !calls.empty() && calls.back().stop_s == 0; }
};
// ArgumentError if the text is no flight record.
FlightRecord parse_flight_record(const std::string& text);
// Explains what is wrong with the job, as far as the records tell: the last job that wrote here. Pure.
std::string diagnose(std::vector<FlightRecord>);

}  // namespace tessera::comm
