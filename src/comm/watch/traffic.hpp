// Traffic of this rank by kind of collective: the source of debug::CommStats.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::comm {

struct Traffic {
  std::int64_t calls = 0, bytes = 0;
};

// Called by the code that runs a collective of the plan, under the plan's names: all-gather, all-reduce,
// reduce-scatter, all-to-all, collective-permute. The library's own messages (agreements, texts) are not
// counted.
void count(std::string_view kind, std::int64_t bytes);
// Called by a communicating kernel that counts its received bytes itself: its runner then does not add the
// plan's estimate. self_counted() is the number of such calls so far.
void counts_itself();
std::int64_t self_counted();

// Totals since the runtime started; "" is the sum over all kinds.
Traffic traffic(const std::string& kind = "");
// The kinds that were counted so far.
std::vector<std::string> traffic_kinds();

// Counts all messages between two ranks that arrived here, so that predictions can be checked. MPI's own
// collectives are not included.
void count_messages(std::int64_t bytes);
std::int64_t bytes_of_messages();  // received by this rank since the runtime started

}  // namespace tessera::comm
