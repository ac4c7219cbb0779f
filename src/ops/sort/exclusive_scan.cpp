#include "ops/sort/exclusive_scan.hpp"

#include <cstring>
#include <vector>

#include "comm/collectives/point_to_point.hpp"

namespace tessera {

std::int64_t scan_steps(std::int64_t ranks) {
  std::int64_t steps = 0;
  for (std::int64_t reach = 1; reach < ranks; reach *= 2) ++steps;
  return steps;
}

//  rank        0      1      2      3          `mine` covers the 2^k ranks that end here; received values
//  reach 1     0     01     12     23          cover those before
//  reach 2     0     01    012   0123
bool exclusive_scan(const comm::Communicator& comm, bool reverse, std::byte* mine, std::byte* before,
                    std::size_t bytes, const std::function<void(const std::byte*, std::byte*)>& combine) {
  const int ranks = comm.size(), place = reverse ? ranks - 1 - comm.rank() : comm.rank();
  const auto rank_at = [&](int at) { return reverse ? ranks - 1 - at : at; };
  const auto message = static_cast<std::int64_t>(bytes);
  std::vector<std::byte> arrived(bytes), leaving(bytes);
  bool has_before = false;
  for (int reach = 1; reach < ranks; reach *= 2) {
    std::memcpy(leaving.data(), mine, bytes);
    comm::Pending sent;
    if (place + reach < ranks) sent = comm::start_send(comm, leaving.data(), message, rank_at(place + reach));
    if (place - reach >= 0) {
      comm::receive(comm, arrived.data(), message, rank_at(place - reach));
      combine(arrived.data(), mine);
      if (has_before)
        combine(arrived.data(), before);
      else
        std::memcpy(before, arrived.data(), bytes);
      has_before = true;
    }
    sent.wait();
  }
  return has_before;
}

}  // namespace tessera
