#include "comm/collectives/piecewise.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/thresholds.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/waiting.hpp"
#include "types/buffer.hpp"

namespace tessera::comm {
namespace {

// Bytes in flight per direction: enough to keep both sides busy, few enough to stay in the cache.
constexpr std::int64_t window_bytes = 4 * best_piece_bytes;

// The pieces of one direction in the order in which they start. Rank r first sends to r + 1 and receives from
// r - 1, then r + 2 and r - 2, ...: no rank is the first peer of all others. The first incomplete piece is
// always in flight on both sides, so pairs cannot wait for each other in a cycle.
struct Queue {
  std::vector<std::size_t> order;  // indices of messages, in the order of sending
  std::size_t next_message = 0, next_piece = 0;
  std::int64_t under_way = 0;

  Queue(const Communicator& comm, std::span<const PiecewiseMessage> messages, int direction,
        const char* label)
      : order(messages.size()) {
    std::vector<int> distance;
    for (const auto& message : messages) {
      const int peer = comm.rank_of(message.peer);
      if (peer < 0 || peer == comm.rank())
        throw InternalError(
            "comm::exchange for " + std::string(label) + ": device " + std::to_string(message.peer) +
            (peer < 0 ? " is not among " + comm.name() : " is this rank itself; copy instead"));
      distance.push_back((direction * (peer - comm.rank()) + comm.size()) % comm.size());
    }
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
  }

  bool exhausted(std::span<const PiecewiseMessage> messages) {
    while (next_message < order.size() && next_piece == messages[order[next_message]].pieces.size())
      ++next_message, next_piece = 0;
    return next_message == order.size();
  }
};

class PiecewiseExchange {
 public:
  PiecewiseExchange(const Communicator& comm, std::span<const PiecewiseMessage> sends,
                    std::span<const PiecewiseMessage> receives, const PieceWork& work, const char* label)
      : comm_(comm),
        sends_(sends),
        receives_(receives),
        work_(work),
        requests_(comm),
        outgoing_(comm, sends, 1, label),
        incoming_(comm, receives, -1, label) {}

  void run() {
    bool idle_work = work_.meanwhile != nullptr;
    for (;;) {
      while (may_start(incoming_, receives_)) start_receive();
      bool sent = false;
      // Packs one piece at a time and takes completed receives in between.
      if (may_start(outgoing_, sends_)) start_send(), sent = true;
      if (take_completed(false) || sent) continue;
      if (idle_work) {
        idle_work = work_.meanwhile();
        continue;
      }
      if (!take_completed(true)) return;
    }
  }

 private:
  struct Flight {
    bool sends = false;
    std::size_t message = 0, piece = 0;
    std::int64_t bytes = 0;
    Buffer memory;
  };

  static bool may_start(Queue& queue, std::span<const PiecewiseMessage> messages) {
    return !queue.exhausted(messages) && (queue.under_way == 0 || queue.under_way < window_bytes);
  }

  // Opens a flight for the queue's next piece; its request has the same index in requests_.
  std::size_t open_flight(Queue& queue, std::span<const PiecewiseMessage> messages, bool sends) {
    std::size_t at = 0;
    if (free_.empty()) {
      at = flights_.size();
      flights_.emplace_back();
      requests_.add(MPI_REQUEST_NULL);
    } else {
      at = free_.back();
      free_.pop_back();
    }
    const std::size_t message = queue.order[queue.next_message], piece = queue.next_piece++;
    flights_[at] = {sends, message, piece, messages[message].pieces[piece], {}};
    queue.under_way += flights_[at].bytes;
    return at;
  }

  void start_receive() {
    const std::size_t at = open_flight(incoming_, receives_, false);
    Flight& flight = flights_[at];
    count_from(comm_, comm_.rank_of(receives_[flight.message].peer), flight.bytes);
    std::byte* data = work_.destination(flight.message, flight.piece);
    if (data == nullptr) {
      flight.memory = Buffer::allocate(flight.bytes);
      data = flight.memory.data();
    }
    check(mpi::Irecv(data, static_cast<int>(flight.bytes), MPI_BYTE,
                     comm_.impl().mpi_rank(comm_.rank_of(receives_[flight.message].peer)), tag_exchange,
                     comm_.impl().handle, &requests_.list()[at]),
          "MPI_Irecv", comm_);
  }

  void start_send() {
    const std::size_t at = open_flight(outgoing_, sends_, true);
    Flight& flight = flights_[at];
    const std::byte* data = work_.source(flight.message, flight.piece);
    if (data == nullptr) {
      flight.memory = Buffer::allocate(flight.bytes);
      work_.pack(flight.message, flight.piece, flight.memory.data());
      data = flight.memory.data();
    }
    check(mpi::Isend(data, static_cast<int>(flight.bytes), MPI_BYTE,
                     comm_.impl().mpi_rank(comm_.rank_of(sends_[flight.message].peer)), tag_exchange,
                     comm_.impl().handle, &requests_.list()[at]),
          "MPI_Isend", comm_);
  }

  // Takes completed requests; false when there were none.
  bool take_completed(bool block) {
    int count = 0;
    const int all = static_cast<int>(flights_.size());
    done_.resize(flights_.size());
    if (block)
      check(mpi::Waitsome(all, requests_.list().data(), &count, done_.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitsome", comm_);
    else
      check(mpi::Testsome(all, requests_.list().data(), &count, done_.data(), MPI_STATUSES_IGNORE),
            "MPI_Testsome", comm_);
    if (count == MPI_UNDEFINED || count == 0) return false;
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(done_[i]);
      Flight& flight = flights_[at];
      if (!flight.sends && flight.memory) work_.unpack(flight.message, flight.piece, flight.memory.data());
      (flight.sends ? outgoing_ : incoming_).under_way -= flight.bytes;
      flight.memory.reset();
      free_.push_back(at);
    }
    return true;
  }

  const Communicator& comm_;
  std::span<const PiecewiseMessage> sends_, receives_;
  const PieceWork& work_;
  std::vector<Flight> flights_;
  Requests requests_;  // by flight; declared after the buffers, so that requests are cancelled first
  std::vector<std::size_t> free_;
  std::vector<int> done_;
  Queue outgoing_, incoming_;
};

}  // namespace

std::int64_t piece_limit(int device, int other) {
  return std::min(message_limit(device, other), threshold(best_piece_bytes, 64));
}

void exchange_piecewise(const Communicator& comm, std::span<const PiecewiseMessage> sends,
                        std::span<const PiecewiseMessage> receives, const PieceWork& work,
                        const char* label) {
  std::int64_t bytes = 0;
  for (const auto& message : sends)
    bytes = std::accumulate(message.pieces.begin(), message.pieces.end(), bytes);
  PiecewiseExchange exchange(comm, sends, receives, work, label);
  const Waiting waiting(label, comm, bytes);
  exchange.run();
}

}  // namespace tessera::comm
