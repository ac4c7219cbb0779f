// The counters of a box of a global array: runs of consecutive row-major positions, split into (high, low)
// words a batch at a time.
#pragma once
#include <tessera/shape.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "types/box.hpp"

namespace tessera::kernels {

// Elements hashed at a time: two words each, in the L1 cache. Padding for a whole vector follows.
constexpr std::int64_t batch = 1024, padding = 64;

struct CounterRange {
  std::uint64_t start = 0;
  std::int64_t count = 0;
};

struct Counters {
  alignas(64) std::uint32_t x0[batch + padding];  // high words, then the first word of the hash
  alignas(64) std::uint32_t x1[batch + padding];  // low words, then the second
  std::int64_t n = 0;

  void push(CounterRange run) {
    const auto high = static_cast<std::uint32_t>(run.start >> 32),
               low = static_cast<std::uint32_t>(run.start);
    if ((run.start + static_cast<std::uint64_t>(run.count) - 1) >> 32 == high) {
      for (std::int64_t i = 0; i < run.count; ++i)
        x0[n + i] = high, x1[n + i] = low + static_cast<std::uint32_t>(i);
    } else {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const std::uint64_t counter = run.start + static_cast<std::uint64_t>(i);
        x0[n + i] = static_cast<std::uint32_t>(counter >> 32),
               x1[n + i] = static_cast<std::uint32_t>(counter);
      }
    }
    n += run.count;
  }
};

// The global row-major positions of a box that is not empty, as runs of consecutive positions.
//
//   global (4, 6), box [1:3, 2:5]:   runs 8..10, 14..16
class BoxRuns {
 public:
  BoxRuns(const Box& box, const Shape& global) {
    const auto strides = row_major_strides(global);
    std::size_t d = box.size();
    // The run includes the trailing dims that the box covers completely.
    while (d > 0) {
      --d;
      run_ *= box[d].size();
      start_ += box[d].start * strides[d];
      if (box[d].size() != global[d]) break;
    }
    for (std::size_t outer = 0; outer < d; ++outer) {
      dims_.push_back({box[outer].size(), strides[outer], 0});
      start_ += box[outer].start * strides[outer];
    }
  }
  bool done() const { return done_; }
  // Returns the next run, or its first `room` positions.
  CounterRange take(std::int64_t room) {
    const CounterRange part{static_cast<std::uint64_t>(start_ + used_), std::min(room, run_ - used_)};
    used_ += part.count;
    if (used_ == run_) advance();
    return part;
  }
  // Returns to the first position, once all were taken.
  void restart() { done_ = false; }

 private:
  struct Dim {
    std::int64_t extent, stride, index;
  };
  void advance() {
    used_ = 0;
    for (std::size_t d = dims_.size(); d-- > 0;) {
      start_ += dims_[d].stride;
      if (++dims_[d].index < dims_[d].extent) return;
      start_ -= dims_[d].extent * dims_[d].stride;
      dims_[d].index = 0;
    }
    done_ = true;
  }
  std::vector<Dim> dims_;
  std::int64_t run_ = 1, start_ = 0, used_ = 0;
  bool done_ = false;
};

}  // namespace tessera::kernels
