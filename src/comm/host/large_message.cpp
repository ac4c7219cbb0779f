#include "comm/host/large_message.hpp"

#include <tessera/error.hpp>

#include <array>
#include <atomic>
#include <string>

#include "base/log.hpp"

namespace tessera::comm {
namespace {

// Whether a message stays in the sender's memory: both ranks know.
bool stays_in_memory(const Communicator& comm, int peer, std::int64_t bytes) {
  constexpr std::int64_t worthwhile = 64 << 10;  // allocate_on_host shares no smaller blocks
  const auto& ids = comm.device_ids();
  return bytes >= worthwhile && share_memory(std::array{ids[comm.rank()], ids[peer]});
}

}  // namespace

OutgoingMessage::OutgoingMessage(const Communicator& comm, int to, std::int64_t bytes)
    : comm_(comm), to_(to), bytes_(bytes), is_kept_(stays_in_memory(comm, to, bytes)) {
  if (bytes > 0) memory_ = is_kept_ ? allocate_on_host(bytes) : Buffer::allocate(bytes);
}

void OutgoingMessage::send() {
  if (bytes_ == 0) return;
  if (is_kept_) {
    address_ = host_address(data());
    std::atomic_thread_fence(std::memory_order_seq_cst);
    departure_ = start_send(comm_, &address_, sizeof address_, to_);
  } else {
    departure_ = start_send(comm_, data(), bytes_, to_);
  }
}

void OutgoingMessage::take_answer() {
  if (!is_kept_) return;
  std::int8_t was_read = 1;
  departure_.wait();
  receive(comm_, &was_read, sizeof was_read, to_);
  if (was_read == 0) departure_ = start_send(comm_, data(), bytes_, to_);
}

IncomingMessage::IncomingMessage(const Communicator& comm, int from, std::int64_t bytes)
    : comm_(comm), from_(from), bytes_(bytes), is_kept_(stays_in_memory(comm, from, bytes)) {
  if (bytes == 0) return;
  if (is_kept_) {
    arrival_ = start_receive(comm_, &address_, sizeof address_, from_);
  } else {
    memory_ = Buffer::allocate(bytes);
    arrival_ = start_receive(comm_, memory_.data(), bytes_, from_);
  }
}

const std::byte* IncomingMessage::wait() {
  arrival_.wait();
  if (!is_kept_) return memory_.data();
  try {
    if (address_.is_visible()) memory_ = map(address_);
  } catch (const SystemError& error) {
    log(LogLevel::info, std::string("a large message: ") + error.what() + "; the message is sent instead");
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  was_read_ = memory_ ? 1 : 0;
  return memory_.data();
}

void IncomingMessage::answer() {
  if (is_kept_) answer_ = start_send(comm_, &was_read_, sizeof was_read_, from_);
}

const std::byte* IncomingMessage::sent() {
  memory_ = Buffer::allocate(bytes_);
  receive(comm_, memory_.data(), bytes_, from_);
  return memory_.data();
}

}  // namespace tessera::comm
