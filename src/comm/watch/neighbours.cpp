#include "comm/watch/neighbours.hpp"

#include <time.h>

#include <algorithm>

namespace tessera::comm {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

bool is_silent(const RankStatus& place, std::int64_t for_ns) {
  const std::int64_t last = place.heartbeat_ns.load(std::memory_order_relaxed);
  return last != 0 && now_ns() - last > std::max(for_ns, second_ns);
}
bool waits_here(const RankStatus& place) {
  return place.waiting_since_ns.load(std::memory_order_relaxed) != 0;
}
std::int64_t waits_elsewhere_since(const RankStatus& place) {
  return place.own_mpi_since_ns.load(std::memory_order_relaxed);
}
std::string name_of(const RankStatus& place) {
  return "rank " + std::to_string(place.rank) + " (process " + std::to_string(place.process) + ")";
}

// The activity of a rank that is outside of the library's calls.
std::string what_it_does(const RankStatus& place) {
  if (is_silent(place, 4 * second_ns))
    return "which shows no sign of life since " + seconds_since(place.heartbeat_ns) +
           ": it was stopped (SIGSTOP, a debugger), or its machine gives it no time";
  if (const auto since = waits_elsewhere_since(place); since != 0)
    return "which waits since " + seconds_since(since) + " in " + place.own_mpi_call.data() +
           ", a call of its own to the MPI library";
  const auto last_call = place.last_call_ns.load(std::memory_order_relaxed);
  if (last_call != 0 && now_ns() - last_call > second_ns)
    return "which computes or works on files since " + seconds_since(last_call) +
           " without a call of the library; or it loops, or waits for something else";
  return "which computes or works on files";
}

}  // namespace

std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::int64_t{time.tv_sec} * second_ns + time.tv_nsec;
}

std::string seconds_since(std::int64_t start_ns) {
  const double s = static_cast<double>(now_ns() - start_ns) * 1e-9;
  return std::to_string(static_cast<std::int64_t>(s)) + "." + std::to_string(static_cast<int>(s * 10) % 10) +
         " s";
}

bool HostNeighbours::somebody_is_silent(std::int64_t for_ns) const {
  return std::any_of(places, places + count,
                     [&](const RankStatus& place) { return is_silent(place, for_ns); });
}

std::string HostNeighbours::describe_silent(std::int64_t for_ns) const {
  std::string text;
  const RankStatus* speaker = nullptr;
  for (const RankStatus* place = places; place != places + count; ++place)
    if (!is_silent(*place, for_ns))
      speaker = speaker == nullptr ? place : speaker;
    else
      text += "\n         " + name_of(*place) + " shows no sign of life since " +
              seconds_since(place->heartbeat_ns) +
              ": it was stopped (SIGSTOP, a debugger), or its machine gives it no time";
  return speaker == mine ? text : "";
}

std::int64_t HostNeighbours::last_progress() const {
  std::int64_t last = 0;
  for (const RankStatus* place = places; place != places + count; ++place)
    last = std::max(last, place->progress_ns.load(std::memory_order_relaxed));
  return last;
}

std::int64_t HostNeighbours::expired() const {
  std::int64_t why = 0;
  for (const RankStatus* place = places; place != places + count; ++place)
    why = std::max(why, place->expired.load(std::memory_order_relaxed));
  return why;
}

bool HostNeighbours::somebody_works_longer_than(std::int64_t limit_ns, std::int64_t since) const {
  return std::any_of(places, places + count, [&](const RankStatus& place) {
    return !waits_here(place) &&
           now_ns() - std::max(since, place.last_call_ns.load(std::memory_order_relaxed)) > limit_ns;
  });
}

bool HostNeighbours::somebody_waits_elsewhere(std::int64_t for_ns) const {
  return std::any_of(places, places + count, [&](const RankStatus& place) {
    const auto since = waits_elsewhere_since(place);
    return since != 0 && now_ns() - since > for_ns;
  });
}

std::string HostNeighbours::describe_those_waited_for() const {
  std::string text;
  for (const RankStatus* place = places; place != places + count; ++place) {
    if (waits_here(*place)) {
      if (place < mine) return "";  // the first waiting rank reports
      continue;
    }
    text += (text.empty() ? "" : "; for ") + name_of(*place) + ", " + what_it_does(*place);
  }
  return text;
}

}  // namespace tessera::comm
