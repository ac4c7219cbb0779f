// Collectives that go on while the caller computes. Memory handed over stays alive and untouched until
// wait() returns.
//
// It moves on inside test(), wait() and any other call of this room. A large all-reduce goes in two rounds,
// the second of which starts in its own test() or wait(): ranks that wait for several wait in the same order.
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
  ~Pending();      // waits; drops what is under way when an exception is passing
  bool test();     // complete now?
  void move_on();  // takes the next round if there is one; asks MPI nothing otherwise
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
// arrived(i) is called from test() and wait().
Pending start_exchange(const Communicator&, std::span<const Message> sends, std::span<const Message> receives,
                       std::function<void(std::size_t)> arrived, const char* label);

}  // namespace tessera::comm
