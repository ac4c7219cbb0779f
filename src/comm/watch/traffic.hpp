// How much this rank has communicated, by kind of collective: what debug::CommStats reads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::comm {

struct Traffic {
  std::int64_t calls = 0, bytes = 0;
};

// Whoever runs a collective of the plan counts it, under the plan's names: all-gather, all-reduce,
// reduce-scatter, all-to-all, collective-permute. What the library sends for its own needs (agreements,
// texts) is not counted.
void count(std::string_view kind, std::int64_t bytes);
// A kernel that communicates says that it counts what it receives itself: whoever runs it then does not count
// what the plan says of it. How often that was said so far.
void counts_itself();
std::int64_t self_counted();

// Since the runtime started; "" is the sum over all kinds.
Traffic traffic(const std::string& kind = "");
// The kinds that were counted so far.
std::vector<std::string> traffic_kinds();

// Messages between two ranks, whoever asked for them: predictions are held to what arrived here. Collectives
// of MPI's own are not among them.
void count_messages(std::int64_t bytes);
std::int64_t bytes_of_messages();  // that this rank received, since the runtime started

}  // namespace tessera::comm
