// Meetings: calls that no rank leaves before all members of a communicator have entered (agreements, the
// making of a group, the end of the program). Ranks in different ones may wait for each other for ever:
//
//   rank 0   meets devices 0-1          waits for rank 1
//   rank 1   meets devices 0-2          waits for ranks 0 and 2      neither can go on, whatever rank 2 does
//
// Each rank writes down, in the page of its host, which meeting it stands in and which it has attended.
// The watchdogs look for such circles and end the job with status 76 and what each of the ranks was about to
// do. What they find is certain, not a matter of time. Members on other hosts are taken to be on their way.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// Ranks of a host, a bit each. Those beyond the first 256 are not looked at.
constexpr int most_places = 256;
using PlaceSet = std::array<std::uint64_t, most_places / 64>;

// One rank's account, in memory that all ranks of the host map. Written by that rank alone; `version` is odd
// meanwhile, and different after each change.
struct Attendance {
  static constexpr std::size_t kept = 64;  // groups whose meetings are remembered
  static constexpr std::size_t most_words = 1600;
  struct Attended {
    std::atomic<std::uint64_t> group;
    std::atomic<std::int64_t> meetings;
  };
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> group;  // of the meeting that the rank stands in; 0: none
  std::atomic<std::int64_t> number;  // of that meeting among those of the group
  std::array<std::atomic<std::uint64_t>, most_places / 64> members;
  std::array<Attended, kept> attended;

  std::atomic<int> told;  // 1: words hold what the rank was about to do
  std::array<char, most_words> words;
};

// Counts of a communicator's rendezvous.
struct MeetingCount {
  std::uint64_t group = 0;  // the same number on all members; 0: not asked for yet
  PlaceSet members{};       // on this host
  std::int64_t meetings = 0;
};

enum class MeetingKind { agreement, making };  // of a group: its first meeting, on all devices' communicator

// Stands inside a Waiting scope. `describe` lives as long as the scope: what this rank is about to do.
class Meeting {
 public:
  Meeting(MeetingCount& count, const std::vector<int>& device_ids, MeetingKind kind,
          const std::function<std::string()>& describe);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
};

// Places of the host whose ranks wait for each other, ascending; empty where somebody can go on or somebody
// moves. `at(i)`: the account of place i.
std::vector<int> stuck_places(int places, const std::function<const Attendance&(int)>& at);

}  // namespace tessera::comm
