#include "kernels/move/content_hash.hpp"

#include "kernels/move/content_hash_pieces.hpp"

extern "C" unsigned long long tessera_hash_pieces_avx2(void* to, const void* from, size_t bytes)
    __attribute__((weak));

namespace tessera::kernels {
namespace {

using HashPieces = unsigned long long (*)(void* to, const void* from, std::size_t bytes);
HashPieces best_for_this_cpu() {
#if defined(__x86_64__)
  if (tessera_hash_pieces_avx2 != nullptr && __builtin_cpu_supports("avx2")) return tessera_hash_pieces_avx2;
#endif
  return hash_pieces;
}

std::uint64_t never_0(unsigned long long hash) { return hash != 0 ? hash : 1; }

}  // namespace

std::uint64_t content_hash(const void* data, std::size_t bytes) {
  return copy_with_hash(nullptr, data, bytes);
}
std::uint64_t copy_with_hash(void* to, const void* from, std::size_t bytes) {
  static const HashPieces pieces = best_for_this_cpu();
  return never_0(pieces(to, from, bytes));
}

}  // namespace tessera::kernels
