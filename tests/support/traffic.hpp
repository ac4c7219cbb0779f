// Bytes that ranks received, from the counters.
#pragma once
#include <functional>

#include "comm/collectives/collectives.hpp"
#include "comm/watch/traffic.hpp"

namespace tessera::test {

// Collective over all ranks.
inline std::int64_t most_of_any_rank(std::int64_t mine) {
  comm::all_reduce(comm::world(), ReduceKind::max, int64, &mine, &mine, 1);
  return mine;
}

// The most bytes that a rank received in point-to-point messages.
inline std::int64_t message_bytes_of(const std::function<void()>& work) {
  const auto before = comm::bytes_of_messages();
  work();
  return most_of_any_rank(comm::bytes_of_messages() - before);
}

}  // namespace tessera::test
