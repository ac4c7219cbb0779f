// What a compiled program costs and what it would send, shown before it runs.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace tessera {

// What a compiled program costs, per rank (the busiest one).
struct CostAnalysis {
  double flops = 0;
  std::int64_t bytes_accessed = 0;
  std::int64_t communication_bytes = 0;
  std::int64_t communication_calls = 0;
};
struct MemoryAnalysis {
  std::int64_t argument_bytes = 0, output_bytes = 0, temporary_bytes = 0, peak_bytes = 0;
};

// What would run: one row per collective.
struct PlannedCollective {
  std::string kind;        // "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"
  std::string axes;        // mesh axes over which ranks talk
  std::int64_t bytes = 0;  // the busiest rank receives
  double seconds = 0;      // predicted by the alpha-beta model
  std::string what;        // "matmul at train.cpp:12"
  std::string rule = {};   // which of its dims are split together: "B.. n -> B.. n | whole n"
};
class Explanation {
 public:
  std::vector<PlannedCollective> collectives;
  std::vector<std::string> outputs;  // type and sharding of each result
  CostAnalysis cost;
  MemoryAnalysis memory;
  double predicted_seconds = 0;  // communication and arithmetic
  std::int64_t bytes() const;    // per rank
  std::int64_t bytes(const std::string& kind) const;
  std::int64_t calls(const std::string& kind = "") const;
  // ShardingError that shows the offending rows when such a collective would run.
  const Explanation& forbid(const std::string& kind) const;
  // ShardingError with the table when more would move per rank.
  const Explanation& limit_bytes(std::int64_t budget) const;
};
std::ostream& operator<<(std::ostream&, const Explanation&);
std::string to_string(const Explanation&);

}  // namespace tessera
