/// @file
/// A program's run on a machine that is not there: every rank and every message followed by the clock.
///
///     const Simulation run = simulate(step, {.trace_path = "step.json"}, w, x);
///     print(run);  // seconds, where it waits, the busiest links
///
/// The machine is the one of TESSERA_MACHINE (tessera machine writes such files): rates, ranks_per_host, and
/// the links of groups of hosts. explain() estimates; simulate() counts what many ranks at once do to the
/// links that they share. Nothing runs and nothing moves. Not collective: works on abstract meshes, on one
/// rank too.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <source_location>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/jit.hpp>

namespace tessera {

/// Options of simulate.
struct SimulateOptions {
  std::string trace_path = {};  ///< a timeline for Perfetto; none if empty
  int trace_ranks = 64;         ///< ranks in the timeline, from 0 on
  /// ArgumentError beyond: 10^8 messages take about half a minute.
  std::int64_t most_messages = 2'000'000'000;
};

/// The time that one call takes, or its collectives of one kind.
struct SimulatedCall {
  std::string kind;           ///< "all-reduce"; empty for arithmetic
  std::string what;           ///< "matmul at train.cpp:12"
  double seconds = 0;         ///< that a rank spends computing, or waiting for it: the mean of all ranks
  double most_seconds = 0;    ///< of the rank that spends most
  double bytes = 0;           ///< sent by all ranks together
  std::int64_t messages = 0;  ///< by all ranks
};
/// A link and the part of the time in which it is in use.
struct SimulatedLink {
  std::string name;  ///< "host 3, out", "group 1 of level 1, in"
  double busy = 0;   ///< from 0 to 1
  double bytes = 0;  ///< in all
};
/// The run of a program. Prints as a table.
struct Simulation {
  double seconds = 0;                ///< until the last rank has ended
  double first_end_s = 0;            ///< until the first rank has ended
  double computing_s = 0;            ///< mean of the ranks
  double waiting_s = 0;              ///< mean of the ranks: for collectives that nothing hid
  int ranks = 0;                     ///< of the program
  int hosts = 0;                     ///< that these are on
  std::int64_t messages = 0;         ///< of all ranks
  std::vector<SimulatedCall> calls;  ///< those that take longest first
  std::vector<SimulatedLink> links;  ///< the busiest eight first
  std::vector<std::string> notes;    ///< what is not followed message by message
};
std::ostream& operator<<(std::ostream&, const Simulation&);
std::string to_string(const Simulation&);  ///< the table

namespace detail {
Simulation simulation_of(const TracedPtr&, const SimulateOptions&);

template <class F, class... A> TracedPtr traced(F& f, const A&... args) {
  const TraceArgs<F, A...> converted(args...);
  const auto request = request_of(converted, {}, std::source_location());
  return trace_with_layouts(request, [&] {
    const auto placeholders = start_trace(request, shape_of_tree(converted));
    const TraceEnd end;
    std::size_t next = 0;
    const auto result = std::apply(f, with_leaves(converted, placeholders, next));
    return finish_trace(request, placeholders, tree_leaves(result), shape_of_tree(result));
  });
}
}  // namespace detail

/// f(args...), simulated on the ranks of its meshes. Values do not matter. ArgumentError if the trace names
/// no rank or more messages than most_messages would be followed; IoError if the trace cannot be written.
template <class F, class... A> Simulation simulate(F f, const SimulateOptions& options, const A&... args) {
  return detail::simulation_of(detail::traced(f, args...), options);
}

}  // namespace tessera
