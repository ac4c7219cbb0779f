#include "comm/collectives/point_to_point.hpp"

#include <cstring>

#include "comm/collectives/pending_impl.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {

void send(const Communicator& comm, const void* data, std::int64_t bytes, int to, int tag) {
  const Waiting waiting("send", comm, bytes);
  Requests requests(comm);
  requests.send(data, bytes, to, tag_user + tag);
  requests.wait_all();
}

void receive(const Communicator& comm, void* data, std::int64_t bytes, int from, int tag) {
  const Waiting waiting("receive", comm, bytes);
  Requests requests(comm);
  requests.receive(data, bytes, from, tag_user + tag);
  requests.wait_all();
}

Pending start_send(const Communicator& comm, const void* data, std::int64_t bytes, int to, int tag) {
  auto impl = std::make_unique<Pending::Impl>(comm, "send", bytes);
  impl->requests.send(data, bytes, to, tag_user + tag);
  return Pending(std::move(impl));
}

Pending start_receive(const Communicator& comm, void* data, std::int64_t bytes, int from, int tag) {
  auto impl = std::make_unique<Pending::Impl>(comm, "receive", bytes);
  count_messages(bytes);
  impl->requests.receive(data, bytes, from, tag_user + tag);
  return Pending(std::move(impl));
}

void send_receive(const Communicator& comm, const void* out, std::int64_t out_bytes, int to, void* in,
                  std::int64_t in_bytes, int from, int tag) {
  if (to == comm.rank() && from == comm.rank()) {
    if (in_bytes > 0) std::memmove(in, out, in_bytes);
    return;
  }
  const Waiting waiting("send and receive", comm, out_bytes);
  Requests requests(comm);
  requests.receive(in, in_bytes, from, tag_user + tag);
  requests.send(out, out_bytes, to, tag_user + tag);
  requests.wait_all();
}

}  // namespace tessera::comm
