// The non-blocking collectives.
#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "base/settings.hpp"
#include "comm/collectives/own_collectives.hpp"
#include "comm/collectives/pending_impl.hpp"
#include "comm/collectives/two_level.hpp"
#include "comm/mpi/mpi_types.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/traffic.hpp"

namespace tessera::comm {
namespace {

template <class Post> void in_pieces(std::int64_t count, Pending::Impl& impl, Post post) {
  const std::int64_t most = settings().message_limit;
  for (std::int64_t done = 0; done < count; done += most) {
    MPI_Request request;
    post(done, static_cast<int>(std::min(most, count - done)), &request);
    impl.requests.add(request);
  }
}

int rank_of_peer(const Communicator& comm, int device_id, const char* label) {
  const int peer = comm.rank_of(device_id);
  if (peer < 0 || peer == comm.rank())
    throw InternalError("comm::exchange for " + std::string(label) + ": device " + std::to_string(device_id) +
                        (peer < 0 ? " is not among " + comm.name() : " is this rank itself; copy instead"));
  return peer;
}

}  // namespace

Pending start_all_reduce(const Communicator& comm, ReduceKind kind, Dtype dtype, const void* in, void* out,
                         std::int64_t count) {
  require_reducible(kind, dtype);
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  if (comm.size() == 1 || count == 0) {
    all_reduce(comm, kind, dtype, in, out, count);
    return {};
  }
  check_collective(comm, "start of an all-reduce", {static_cast<std::int64_t>(kind), dtype.code, count});
  auto impl = std::make_unique<Pending::Impl>(comm, "all-reduce", count * item);
  if (goes_by_hosts(comm)) {
    start_all_reduce_by_hosts(*impl, kind, dtype, static_cast<const std::byte*>(in),
                              static_cast<std::byte*>(out), count);
    return Pending(std::move(impl));
  }
  if (use_own(Collective::all_reduce, comm.size(), count * item)) {
    start_own_all_reduce(*impl, kind, dtype, in, out, count);
    return Pending(std::move(impl));
  }
  in_pieces(count, *impl, [&](std::int64_t done, int n, MPI_Request* request) {
    const void* from = in == out ? MPI_IN_PLACE : static_cast<const std::byte*>(in) + done * item;
    check(mpi::Iallreduce(from, static_cast<std::byte*>(out) + done * item, n, mpi_type(dtype),
                          mpi_op(kind, dtype), comm.impl().handle, request),
          "MPI_Iallreduce", comm);
  });
  return Pending(std::move(impl));
}

Pending start_all_gather(const Communicator& comm, const void* in, std::int64_t bytes, void* out) {
  std::vector<std::int64_t> bytes_of(comm.size(), bytes), offset_of(bytes_of.size());
  std::exclusive_scan(bytes_of.begin(), bytes_of.end(), offset_of.begin(), std::int64_t{0});
  return start_all_gather_v(comm, in, bytes, out, bytes_of, offset_of);
}

Pending start_all_gather_v(const Communicator& comm, const void* in, std::int64_t bytes, void* out,
                           std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  const int ranks = comm.size(), me = comm.rank();
  auto* result = static_cast<std::byte*>(out);
  std::byte* own_place = result + offset_of[me];
  if (bytes > 0 && own_place != in) std::memmove(own_place, in, bytes);
  if (ranks == 1) return {};
  check_collective(comm, "start of an all-gather", {offset_of.back() + bytes_of.back()});
  auto impl = std::make_unique<Pending::Impl>(comm, "all-gather", bytes);
  if (goes_by_hosts(comm)) {
    start_gather_by_hosts(*impl, result, bytes_of, offset_of);
    return Pending(std::move(impl));
  }
  for (int step = 1; step < ranks; ++step) {
    const int from = (me - step + ranks) % ranks;
    const auto i = static_cast<std::size_t>(from);
    impl->requests.receive(result + offset_of[i], bytes_of[i], from, tag_collective);
  }
  for (int step = 1; step < ranks; ++step)
    impl->requests.send(own_place, bytes, (me + step) % ranks, tag_collective);
  return Pending(std::move(impl));
}

Pending start_broadcast(const Communicator& comm, void* data, std::int64_t bytes, int root) {
  if (comm.size() == 1 || bytes == 0) return {};
  check_collective(comm, "start of a broadcast", {bytes, root});
  count_broadcast(comm, bytes, root);
  auto impl = std::make_unique<Pending::Impl>(comm, "broadcast", bytes);
  in_pieces(bytes, *impl, [&](std::int64_t done, int n, MPI_Request* request) {
    check(mpi::Ibcast(static_cast<std::byte*>(data) + done, n, MPI_BYTE, comm.impl().mpi_rank(root),
                      comm.impl().handle, request),
          "MPI_Ibcast", comm);
  });
  return Pending(std::move(impl));
}

Pending start_exchange(const Communicator& comm, std::span<const Message> sends,
                       std::span<const Message> receives, std::function<void(std::size_t)> arrived,
                       const char* label) {
  std::int64_t bytes = 0;
  for (const Message& message : sends) bytes += message.bytes, rank_of_peer(comm, message.peer, label);
  for (const Message& message : receives) {
    if (rank_of_peer(comm, message.peer, label) != comm.rank()) count_messages(message.bytes);
  }
  auto impl = std::make_unique<Pending::Impl>(comm, label, bytes);
  std::vector<std::size_t> empty;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    const Message& message = receives[i];
    const int pieces = impl->requests.receive(message.data, message.bytes,
                                              rank_of_peer(comm, message.peer, label), tag_exchange);
    impl->pieces_missing.push_back(pieces);
    impl->receive_of_request.insert(impl->receive_of_request.end(), pieces, i);
    if (pieces == 0) empty.push_back(i);
  }
  for (const Message& message : sends)
    impl->requests.send(message.data, message.bytes, rank_of_peer(comm, message.peer, label), tag_exchange);
  if (arrived) {
    for (const std::size_t i : empty) arrived(i);
    impl->arrived = std::move(arrived);
  }
  return Pending(std::move(impl));
}

}  // namespace tessera::comm
