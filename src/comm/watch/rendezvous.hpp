// Rendezvous: calls that no rank leaves before all members of a communicator have entered (agreements, the
// creation of a group, the end of the program). Ranks in different ones may deadlock:
//
//   rank 0   in a rendezvous of devices 0-1    waits for rank 1
//   rank 1   in a rendezvous of devices 0-2    waits for ranks 0 and 2; rank 2 cannot resolve this
//
// Each rank writes into its host's page which rendezvous it is in and which ones it has attended. The
// watchdogs search these for cycles and end the job with status 76 and the calls that the ranks were about to
// make. A reported cycle is certain, not a matter of time. Members on other hosts are assumed to be on their
// way.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

// A set of a host's ranks, one bit each. Ranks beyond the first 256 are not examined.
constexpr int most_host_ranks = 256;
using HostRanks = std::array<std::uint64_t, most_host_ranks / 64>;

// One rank's account, in memory that all ranks of the host map. Only that rank writes it; `version` is odd
// during a change, and different after each one.
struct Attendance {
  static constexpr std::size_t kept = 64;  // groups whose last rendezvous is remembered
  static constexpr std::size_t most_words = 1600;
  struct Attended {
    std::atomic<std::uint64_t> group;
    std::atomic<std::int64_t> rendezvous_count;
  };
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> group;  // group of the current rendezvous; 0: none
  std::atomic<std::int64_t> number;  // number of that rendezvous within its group
  std::array<std::atomic<std::uint64_t>, most_host_ranks / 64> members;
  std::array<Attended, kept> attended;

  std::atomic<int> reported;  // 1: words hold what the rank was about to do
  std::array<char, most_words> words;
};

// Counts the rendezvous of a communicator.
struct RendezvousCount {
  std::uint64_t group = 0;  // equal on all members; 0: not determined yet
  HostRanks members{};      // on this host
  std::int64_t rendezvous_count = 0;
};

enum class RendezvousKind {
  agreement,
  making
};  // making: creation of a group, which takes place on the communicator of all devices

// To be used inside a Waiting scope. `describe` tells what this rank is about to do; it must outlive the
// Rendezvous.
class Rendezvous {
 public:
  Rendezvous(RendezvousCount& count, const std::vector<int>& device_ids, RendezvousKind kind,
             const std::function<std::string()>& describe);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
};

// The places of the host's deadlocked ranks, ascending; empty if some rank can continue or an account changes
// meanwhile. `at(i)`: the account of place i.
std::vector<int> stuck_ranks(int places, const std::function<const Attendance&(int)>& at);

}  // namespace tessera::comm
