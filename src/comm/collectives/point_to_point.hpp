// Messages between two ranks of a communicator, for algorithms that pass panels along (LU, QR, rings). Peers
// are given as ranks of the communicator, not as device ids. Messages between a pair with the same tag arrive
// in order.
#pragma once
#include <span>
#include <type_traits>

#include "comm/collectives/pending.hpp"

namespace tessera::comm {

void send(const Communicator&, const void* data, std::int64_t bytes, int to, int tag = 0);
void receive(const Communicator&, void* data, std::int64_t bytes, int from, int tag = 0);
Pending start_send(const Communicator&, const void* data, std::int64_t bytes, int to, int tag = 0);
Pending start_receive(const Communicator&, void* data, std::int64_t bytes, int from, int tag = 0);
// Sends to one rank while receiving from another; if both are this rank itself, the data are copied.
void send_receive(const Communicator&, const void* out, std::int64_t out_bytes, int to, void* in,
                  std::int64_t in_bytes, int from, int tag = 0);

template <class T> constexpr std::int64_t bytes_of(std::span<T> s) {
  return static_cast<std::int64_t>(s.size_bytes());
}

template <class T> void send(const Communicator& comm, std::span<const T> data, int to, int tag = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  send(comm, data.data(), bytes_of(data), to, tag);
}
template <class T> void receive(const Communicator& comm, std::span<T> data, int from, int tag = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  receive(comm, data.data(), bytes_of(data), from, tag);
}
template <class T> void broadcast(const Communicator& comm, std::span<T> data, int root) {
  static_assert(std::is_trivially_copyable_v<T>);
  broadcast(comm, data.data(), bytes_of(data), root);
}

}  // namespace tessera::comm
