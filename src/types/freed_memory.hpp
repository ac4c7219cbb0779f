// Detects uses of freed blocks that a pool keeps: under the address sanitizer every access is an error, and
// builds with verifiers fill the block's beginning with ones (NaN, -1), so that a use shows.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace tessera {

// Called before the block returns to the system.
inline void unmark([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t capacity) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(block, capacity);
#endif
}

inline void mark_freed([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t capacity) {
  unmark(block, capacity);  // the unrequested tail is poisoned while the block is in use
#ifdef TESSERA_VERIFY
  constexpr std::size_t shown = std::size_t{1} << 20;  // filling more costs more than it helps
  std::memset(block, 0xff, std::min(capacity, shown));
#endif
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(block, capacity);
#endif
}

// Marks `bytes` of the block as in use again.
inline void mark_taken([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t bytes,
                       [[maybe_unused]] std::size_t capacity) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(block + bytes, capacity - bytes);
#endif
}

}  // namespace tessera
