// Collectives that run while the caller computes. Memory passed to them must stay alive and unmodified until
// wait() returns.
//
// A collective advances inside test(), wait() and any other call of comm. A large all-reduce has two rounds,
// the second of which starts in its own test() or wait(): ranks must wait for several collectives in the same
// order.
#pragma once
#include <functional>
#include <memory>

#include "comm/collectives/collectives.hpp"

namespace tessera::comm {

class Pending {
 public:
  Pending();  // complete
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();      // waits; cancels the collective while an exception is passing
  bool test();     // complete now?
  void move_on();  // starts the next round if there is one; makes no other MPI call
  void wait();

  struct Impl;
  explicit Pending(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

Pending start_all_reduce(const Communicator&, ReduceKind, Dtype, const void* in, void* out,
                         std::int64_t count);
Pending start_all_gather(const Communicator&, const void* in, std::int64_t bytes, void* out);
Pending start_all_gather_v(const Communicator&, const void* in, std::int64_t bytes, void* out,
                           std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of);
Pending start_broadcast(const Communicator&, void* data, std::int64_t bytes, int root);
// arrived(i) is called from inside test() and wait().
Pending start_exchange(const Communicator&, std::span<const Message> sends, std::span<const Message> receives,
                       std::function<void(std::size_t)> arrived, const char* label);

}  // namespace tessera::comm
