// The implementation that is compiled once per kind of CPU with its own options. Only those two files include
// it, and no C++ library header beside it: inline functions compiled for AVX2 must not be shared with other
// files.
#pragma once
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

static inline unsigned long long hash_pieces(void* to, const void* from, size_t bytes) {
  const size_t piece_bytes = 64 << 10;
  if (to == nullptr) return XXH3_64bits(from, bytes);
  if (bytes <= piece_bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
    return XXH3_64bits(from, bytes);
  }
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (size_t done = 0; done < bytes; done += piece_bytes) {
    const size_t piece = bytes - done < piece_bytes ? bytes - done : piece_bytes;
    const char* const source = static_cast<const char*>(from) + done;
    XXH3_64bits_update(&state, source, piece);
    memcpy(static_cast<char*>(to) + done, source, piece);
  }
  return XXH3_64bits_digest(&state);
}
