// Sizes from which another algorithm is worth its overhead: threads, stores past the cache, reads without
// messages. Tests lower them, so that small arrays of odd extents use every algorithm.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tessera {

namespace detail {
extern std::atomic<std::int64_t> threshold_divisor;  // 1, or TESSERA_TEST_THRESHOLDS of the environment
}

// The usual size, or the n-th part of it where thresholds are low; never below `least`.
inline std::int64_t threshold(std::int64_t usual, std::int64_t least = 1) {
  const std::int64_t n = detail::threshold_divisor.load(std::memory_order_relaxed);
  return n == 1 ? usual : std::max(usual / n, std::min(least, usual));
}

// Lowers the thresholds during its lifetime; all ranks must create it alike.
class LowThresholds {
 public:
  explicit LowThresholds(std::int64_t n) : before_(detail::threshold_divisor.exchange(n)) {}
  ~LowThresholds() { detail::threshold_divisor = before_; }
  LowThresholds(const LowThresholds&) = delete;
  LowThresholds& operator=(const LowThresholds&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace tessera
