// One large message between two ranks. On one host it stays in the sender's memory, where the
// receiver reads it: no copy is made on the way.
//
//   sender    --address-->            receiver   maps and reads the memory
//             <--read, or send it--
//             --message-->                       if it could not be mapped
#pragma once
#include "comm/collectives/point_to_point.hpp"
#include "comm/host/host_memory.hpp"
#include "comm/mpi/communicator.hpp"

namespace tessera::comm {

class OutgoingMessage {
 public:
  OutgoingMessage(const Communicator&, int to, std::int64_t bytes);
  std::byte* data() { return memory_.data(); }
  void send();  // data() is complete
  // Waits for the receiver's answer, and starts to send if it asks for that. The destructor returns when the
  // receiver has the message.
  void take_answer();

 private:
  const Communicator& comm_;
  int to_;
  std::int64_t bytes_;
  bool is_kept_;
  Buffer memory_;
  HostAddress address_;
  Pending departure_;
};

class IncomingMessage {
 public:
  IncomingMessage(const Communicator&, int from, std::int64_t bytes);
  // Null: the sender's memory cannot be mapped.
  const std::byte* wait();
  // After wait(): the sender may reuse its memory, or sends the message (to sent()) if wait() returned null.
  void answer();
  const std::byte* sent();

 private:
  const Communicator& comm_;
  int from_;
  std::int64_t bytes_;
  bool is_kept_;
  Buffer memory_;
  HostAddress address_;
  std::int8_t was_read_ = 1;
  Pending arrival_, answer_;
};

}  // namespace tessera::comm
