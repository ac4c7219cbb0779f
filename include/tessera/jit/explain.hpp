/// @file
/// The cost of a compiled program and its traffic, shown before it runs. Nothing here is collective: plans
/// are the same on every rank.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <tessera/sharding.hpp>

namespace tessera {

/// The work of a compiled program, on the busiest rank.
struct CostAnalysis {
  double flops = 0;                      ///< arithmetic operations
  std::int64_t bytes_accessed = 0;       ///< bytes read and written by kernels
  std::int64_t communication_bytes = 0;  ///< received from other ranks
  std::int64_t communication_calls = 0;  ///< collectives
  std::int64_t host_crossing_bytes = 0;  ///< the part of the received bytes from ranks on other hosts
};
/// Bytes on the busiest rank.
struct MemoryAnalysis {
  std::int64_t argument_bytes = 0;   ///< held by the arguments
  std::int64_t output_bytes = 0;     ///< held by the results
  std::int64_t temporary_bytes = 0;  ///< peak memory of intermediate values
  std::int64_t peak_bytes = 0;       ///< peak memory of all values together
};

/// One collective that would run.
struct PlannedCollective {
  /// "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", or "panels": the
  /// operand panels that a product fetches during its computation.
  std::string kind;
  std::string axes;        ///< mesh axes over which ranks communicate
  std::int64_t bytes = 0;  ///< received by the busiest rank
  double seconds = 0;      ///< predicted by the alpha-beta model
  std::string what;        ///< "matmul at train.cpp:12"
  /// The sharding rule, which names the dims split together: "B.. n -> B.. n | whole n".
  std::string rule = {};
  std::int64_t calls = 1;  ///< the number of calls in this row: beyond 64 of one op they share a row
  /// The part of `bytes` that comes from ranks on other hosts. Estimated by an even share over the ranks for
  /// kernels that communicate by themselves.
  std::int64_t host_crossing_bytes = 0;
};
/// One way to compute something, with its predicted costs.
struct PlannedCandidate {
  std::string strategy;              ///< "panels of the inner dimension, 12 of 256"
  double seconds = 0;                ///< predicted, of one rank
  std::int64_t bytes = 0;            ///< received by the busiest rank
  std::int64_t temporary_bytes = 0;  ///< besides operands and result
  bool chosen = false;               ///< the candidate that would run
  std::string why = {};              ///< "over the limit of 24 MiB"
};
/// The candidates that the planner compared for one product.
struct PlannedChoice {
  std::string what;                          ///< "matmul at train.cpp:12"
  std::vector<PlannedCandidate> candidates;  ///< candidate 0 moves operands as one message each
};
/// A layout that was chosen for P::automatic.
struct ChosenLayout {
  std::string what;                  ///< "argument 0", "result 1", "with_sharding_constraint at train.cpp:12"
  std::optional<Sharding> sharding;  ///< nullopt: none is better than what propagation gives
};
/// A value of the forward pass that a gradient's backward pass reads.
struct KeptValue {
  std::string what;        ///< "matmul at train.cpp:12", "argument 0"
  std::string type;        ///< "float32[64,1024]"
  std::int64_t bytes = 0;  ///< bytes of the busiest rank's block
  /// An argument of the program, which occupies its memory anyway.
  bool is_argument = false;
};
/// The plan of a program. Prints as a table.
class Explanation {
 public:
  std::vector<PlannedCollective> collectives;  ///< a row for each, or for many of one op
  std::vector<PlannedChoice> choices;          ///< products whose operands are not in the needed layout
  std::vector<std::string> outputs;            ///< type and sharding of each result
  CostAnalysis cost;                           ///< arithmetic and traffic
  MemoryAnalysis memory;                       ///< bytes
  double predicted_seconds = 0;                ///< communication and arithmetic
  double agreement_seconds = 0;                ///< of these: ranks of several hosts compare the call first
  std::vector<ChosenLayout> layouts;           ///< the layouts chosen for P::automatic
  std::string layouts_reason;                  ///< how these were found, and what takes the time
  std::vector<KeptValue> kept;  ///< read by the backward passes of grad, vjp ..., the largest first
  /// Set by explain(f, args...) where other layouts of the arguments would take less than 2/3 of the time.
  std::string hint;
  /// Held for backward passes besides the arguments.
  std::int64_t kept_bytes() const;
  std::int64_t bytes() const;  ///< per rank
  std::int64_t bytes(const std::string& kind) const;
  /// The part of the bytes per rank that comes from ranks on other hosts.
  std::int64_t host_crossing_bytes() const;
  /// Collectives of a kind, or of all.
  std::int64_t calls(const std::string& kind = "") const;
  /// ShardingError that shows the offending rows if such a collective would run.
  const Explanation& forbid(const std::string& kind) const;
  /// ShardingError with the table if more bytes would move per rank.
  const Explanation& limit_bytes(std::int64_t budget) const;
};
std::ostream& operator<<(std::ostream&, const Explanation&);
/// The table.
std::string to_string(const Explanation&);

}  // namespace tessera
