// Rows as lines of text, and as lines of JSON.
#pragma once
#include <string>
#include <vector>

#include "bench.hpp"

namespace bench {

struct Side {
  double seconds = 0;           // median, including extra_s
  std::vector<double> samples;  // in measuring order; none for a budget
};

// On rank 0.
void report_times(const std::string& name, const Side& ours, const Peer& peer, const Side& theirs,
                  const Limit& limit);
void report_bytes(const std::string& name, double ours, const std::string& what, double asked, double ratio);

}  // namespace bench
