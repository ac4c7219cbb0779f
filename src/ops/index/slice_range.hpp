// The elements selected by start:stop:step.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include <tessera/array/index.hpp>

namespace tessera {

struct SliceRange {
  std::int64_t start = 0, step = 1, count = 0;  // start, start + step, ...
};

// The range of a slice of a dim of extent n, with Python's rules. The step must not be 0; for at most one
// element it becomes 1.
inline SliceRange range_of(const Slice& s, std::int64_t n) {
  const std::int64_t step = s.step.value_or(1);
  // The bounds of the iteration: [0, n] upwards, [-1, n - 1] downwards.
  const std::int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? n : n - 1;
  const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, lowest, highest);
  };
  const std::int64_t start = bound(s.start, step > 0 ? 0 : n - 1), stop = bound(s.stop, step > 0 ? n : -1),
                     length = step > 0 ? stop - start : start - stop;
  if (length <= 0) return {};
  // The magnitude of the lowest step does not fit a signed integer.
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  const auto count = static_cast<std::int64_t>(static_cast<std::uint64_t>(length - 1) / stride) + 1;
  return {start, count == 1 ? 1 : step, count};
}

}  // namespace tessera
