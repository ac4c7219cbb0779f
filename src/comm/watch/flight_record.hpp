// The flight record: each rank's last calls as a file, written when a wait was too long, when the process
// crashes, and on SIGUSR2; and what the files of all ranks say together.
//
//   mpirun ... &  kill -USR2 $!      every rank, on every host, writes tessera-flight/rank-0003.txt; goes on
//   tessera doctor tessera-flight    who differs, waits, computes or is gone
//
// Writing uses nothing that a signal handler must not: no allocation, no locks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "comm/watch/recorder.hpp"

namespace tessera::comm {

struct RankPlace {
  int rank = 0, ranks = 1;
  std::string host;
  std::uint64_t job = 0;  // the same on all ranks of a job, and on no other's
};

// From now on signals find this recorder, until disarm. `folder`: TESSERA_FLIGHT_RECORD; "" writes on SIGUSR2
// alone, to ./tessera-flight. A handler of SIGUSR2 that the application has set is left in place.
void arm_flight_record(const Recorder&, const RankPlace&, const std::string& folder);
void disarm_flight_record();
// Nothing where no folder was named. reason: "time-out".
void write_flight_record(const char* reason) noexcept;

// ---- reading ----

struct FlightCall {
  std::int64_t number = 0, bytes = 0;
  double start_s = 0, stop_s = 0;  // of the rank's own clock; stop 0: it goes on
  std::string what, group, purpose;
};
struct FlightRecord {
  int rank = 0, ranks = 1, process = 0;
  std::string host, reason, job;
  double clock_s = 0;  // when it was written, by the monotonic clock of the host
  double date_s = 0;   // by the calendar
  std::vector<FlightCall> calls;
  bool waits() const { return !calls.empty() && calls.back().stop_s == 0; }
};
// ArgumentError where the text is no flight record.
FlightRecord parse_flight_record(const std::string& text);
// What is wrong with the job, as far as the records tell: the last one that wrote here. Pure.
std::string diagnose(std::vector<FlightRecord>);

}  // namespace tessera::comm
