/// @file
/// Layouts chosen for you: the shardings of a function's arguments that cost least by the planner's model.
///
///     const Advice advice = advise(step, {.meshes = meshes_of(8), .memory_limit_bytes = 1 << 30}, w, x);
///     print(advice);  // the three best with seconds, bytes, peak and the reason
///     w = device_put(w, advice.best[0].shardings[0]);
///
/// **What is searched.** Each array argument, in each mesh: every way to give the mesh axes to its dims, or
/// to none; no axis splits a dim into more blocks than it has elements. All combinations are planned where
/// they are few; else arguments are improved in turn, and those of one shape together, from several starts.
/// The shardings of results and of values in between follow, as in jit.
/// **What is compared.** The seconds that explain predicts, among plans within the memory limit. Nothing
/// runs and nothing moves. Not collective: works on abstract meshes of any size, on one rank too.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/jit.hpp>
#include <tessera/sharding.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// Options of advise: the choices, and a bound on the plans.
struct AdviseOptions {
  std::vector<Mesh> meshes = {};        ///< to choose from; none: one axis over all devices
  std::int64_t memory_limit_bytes = 0;  ///< peak memory of the busiest rank; 0: no limit
  int best = 3;                         ///< how many answers
  int most_plans = 1000;                ///< plans that are made at most
  /// Arguments that keep the layouts they have, by number of their leaf (trees are flattened).
  std::vector<int> keep = {};
};

/// One choice of layouts for all array arguments.
struct AdvisedLayout {
  std::vector<Sharding> shardings;     ///< shardings of the arguments' array leaves, in order
  double predicted_seconds = 0;        ///< seconds of one call
  std::int64_t bytes = 0;              ///< received by the busiest rank
  std::int64_t peak_bytes = 0;         ///< peak memory of the busiest rank
  std::string reason;                  ///< the part of the program that takes the time
  bool is_within_memory_limit = true;  ///< false: nothing that was tried is
};

/// The answer of advise. Prints as a table.
struct Advice {
  std::vector<AdvisedLayout> best;     ///< the quickest first
  std::optional<AdvisedLayout> given;  ///< the layouts that the arguments have, where all are committed
  bool is_exhaustive = true;           ///< every combination was planned
  int plans = 0;                       ///< how many were
};
std::ostream& operator<<(std::ostream&, const Advice&);
/// The table, and a hint where the given layouts take more than 1.5 times the best one's time.
std::string to_string(const Advice&);

/// Abstract meshes of so many ranks: every way to write the number as a product of at most two sizes, larger
/// axes first, with the names x and y. ArgumentError below 1.
std::vector<Mesh> meshes_of(int ranks);

namespace detail {
Advice advise(const std::vector<Leaf>& leaves, const AdviseOptions& options, const PlanOfLayouts& plan);
}  // namespace detail

/// The layouts of args for which f(args...) costs least. Values do not matter: zeros(shape) will do.
/// ArgumentError for options that cannot be met, ShardingError where no layout at all can be planned.
template <class F, class... A> Advice advise(const F& f, const AdviseOptions& options, const A&... args) {
  const std::tuple<A...> given(args...);
  const auto jitted = jit(f, {}, std::source_location());
  return detail::advise(detail::leaves_of(given), options, [&](const std::vector<Sharding>& shardings) {
    return std::apply([&](const auto&... x) { return jitted.lower(x...).compile().explanation(); },
                      detail::with_layouts(given, shardings));
  });
}

}  // namespace tessera
