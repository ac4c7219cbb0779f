// Compiled with -mavx2 if the compiler supports it; called only on CPUs with AVX2.
#if defined(__AVX2__)
#include "kernels/move/content_hash_pieces.hpp"
extern "C" unsigned long long tessera_hash_pieces_avx2(void* to, const void* from, size_t bytes);
unsigned long long tessera_hash_pieces_avx2(void* to, const void* from, size_t bytes) {
  return hash_pieces(to, from, bytes);
}
#endif
