// The ring buffer of a rank's last calls. For src/comm/watch alone.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace tessera::comm {

struct Call {
  std::int64_t number = 0, bytes = 0, start_ns = 0;
  std::atomic<std::int64_t> stop_ns{0};  // 0: still running
  std::array<char, 40> what{};
  std::array<char, 40> group{};
  std::array<char, 96> purpose{};
};

constexpr std::size_t kept_calls = 64;

struct Recorder {
  std::mutex mutex;  // guards the ring: locked by the main thread, and by the watchdog when it reports
  std::array<Call, kept_calls> ring;
  std::int64_t calls = 0;
  int depth = 0;
  std::string_view purpose;
};

}  // namespace tessera::comm
