// Blocks that a pool keeps for the next request are nobody's: under the address sanitizer every use of one is
// an error, and builds with verifiers fill its beginning with ones (NaN, -1), so that it shows.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace tessera {

inline void mark_freed([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t capacity) {
#ifdef TESSERA_VERIFY
  constexpr std::size_t shown = std::size_t{1} << 20;  // all of a large block would cost more than its use
  std::memset(block, 0xff, std::min(capacity, shown));
#endif
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(block, capacity);
#endif
}

// `bytes` of it are somebody's again.
inline void mark_taken([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t bytes,
                       [[maybe_unused]] std::size_t capacity) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(block + bytes, capacity - bytes);
#endif
}

// Before it goes back to the system.
inline void unmark([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t capacity) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(block, capacity);
#endif
}

}  // namespace tessera
