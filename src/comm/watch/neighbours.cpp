#include "comm/watch/neighbours.hpp"

#include <time.h>

#include <algorithm>

namespace tessera::comm {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

bool is_silent(const Place& place, std::int64_t for_ns) {
  const std::int64_t last = place.heartbeat_ns.load(std::memory_order_relaxed);
  return last != 0 && now_ns() - last > std::max(for_ns, second_ns);
}
bool waits_here(const Place& place) { return place.waiting_since_ns.load(std::memory_order_relaxed) != 0; }
std::int64_t waits_elsewhere_since(const Place& place) {
  return place.own_mpi_since_ns.load(std::memory_order_relaxed);
}
std::string name_of(const Place& place) {
  return "rank " + std::to_string(place.rank) + " (process " + std::to_string(place.process) + ")";
}

// Of a rank that stands in no call of the library's.
std::string what_it_does(const Place& place) {
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

bool Neighbours::somebody_is_silent(std::int64_t for_ns) const {
  return std::any_of(places, places + count, [&](const Place& place) { return is_silent(place, for_ns); });
}

std::string Neighbours::describe_silent(std::int64_t for_ns) const {
  std::string text;
  const Place* speaker = nullptr;
  for (const Place* place = places; place != places + count; ++place)
    if (!is_silent(*place, for_ns))
      speaker = speaker == nullptr ? place : speaker;
    else
      text += "\n         " + name_of(*place) + " shows no sign of life since " +
              seconds_since(place->heartbeat_ns) +
              ": it was stopped (SIGSTOP, a debugger), or its machine gives it no time";
  return speaker == mine ? text : "";
}

std::int64_t Neighbours::last_progress() const {
  std::int64_t last = 0;
  for (const Place* place = places; place != places + count; ++place)
    last = std::max(last, place->progress_ns.load(std::memory_order_relaxed));
  return last;
}

std::int64_t Neighbours::expired() const {
  std::int64_t why = 0;
  for (const Place* place = places; place != places + count; ++place)
    why = std::max(why, place->expired.load(std::memory_order_relaxed));
  return why;
}

bool Neighbours::somebody_works_longer_than(std::int64_t limit_ns, std::int64_t since) const {
  return std::any_of(places, places + count, [&](const Place& place) {
    return !waits_here(place) &&
           now_ns() - std::max(since, place.last_call_ns.load(std::memory_order_relaxed)) > limit_ns;
  });
}

bool Neighbours::somebody_waits_elsewhere(std::int64_t for_ns) const {
  return std::any_of(places, places + count, [&](const Place& place) {
    const auto since = waits_elsewhere_since(place);
    return since != 0 && now_ns() - since > for_ns;
  });
}

std::string Neighbours::describe_those_waited_for() const {
  std::string text;
  for (const Place* place = places; place != places + count; ++place) {
    if (waits_here(*place)) {
      if (place < mine) return "";  // the first who waits speaks
      continue;
    }
    text += (text.empty() ? "" : "; for ") + name_of(*place) + ", " + what_it_does(*place);
  }
  return text;
}

}  // namespace tessera::comm
