// The event simulation: ranks that walk through a list of steps, each with a clock of its own, and messages
// in the network. Exact for its model: every message of every rank is followed, in the order of time.
//
// Model (LogGP with shared links): a message takes a rank's processor message_s at either end, leaves through
// the host's link after those that came before, and arrives one latency after its last byte left, or when the
// receiver's link has taken in those that came before. Memory behind the links is not bounded. Collectives
// that were begun go on while their rank computes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "simulate/network.hpp"
#include "simulate/rounds.hpp"

namespace tessera {

// One step of all ranks.
struct TimelineStep {
  enum Kind { compute, begin, finish, mark, repeat } kind = compute;
  int name = 0;                                     // of TimelinePlan::names
  double seconds = 0;                               // compute: of the largest block
  std::shared_ptr<const std::vector<float>> share;  // compute: of each rank, 0 to 1; none: 1
  RoundsPtr rounds;                                 // begin
  int of = 0;        // finish: the step that began; repeat: the step of the mark
  double times = 0;  // repeat: how often the time since the mark passes again
};
struct TimelinePlan {
  std::vector<TimelineStep> steps;
  std::vector<std::string> names;  // what the steps serve: "all-reduce for matmul at train.cpp:12"
  int ranks = 0;
};

// A stretch of a rank's time, for a picture.
struct TimelineSpan {
  int rank, name;
  bool waits;
  double start_s, seconds;
};

// Sums over the ranks.
struct TimelineSum {
  double seconds = 0;  // mean of the ranks
  double most_s = 0;   // of the rank that spent most
  double bytes = 0;    // sent by all ranks
  std::int64_t messages = 0;
};

struct TimelineResult {
  double seconds = 0;
  std::vector<TimelineSum> computing, waiting;  // by name
  std::vector<TimelineSpan> spans;
  std::vector<double> end_s;  // by rank
  std::vector<LinkLoad> loads;
  std::int64_t messages = 0;
  int hosts = 0;
};

// Ranks below `pictured` have spans. ArgumentError where more than most_messages would be followed.
TimelineResult run_timeline(const TimelinePlan&, const Rates&, int pictured = 0,
                            std::int64_t most_messages = std::int64_t{1} << 40);

}  // namespace tessera
