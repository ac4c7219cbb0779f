// The dtype of positions.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <limits>

namespace tessera {

// For positions in a dim of n elements: int32, if that holds them.
inline Dtype position_dtype(std::int64_t n) {
  return n > std::numeric_limits<std::int32_t>::max() ? int64 : int32;
}

}  // namespace tessera
