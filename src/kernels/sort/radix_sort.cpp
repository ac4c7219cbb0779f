#include "kernels/sort/radix_sort.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::kernels {
namespace {

struct Nothing {};

// 8-bit digits: 256 write streams still fit the first-level cache and TLB; a digit that all keys share costs
// no pass.
template <class K, class P>
void sort_digits(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n) {
  constexpr int digits = static_cast<int>(sizeof(K));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(digits) * 256, 0);
  for (std::int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d)
      ++counts[static_cast<std::size_t>(d) * 256 + ((keys[i] >> (8 * d)) & 0xFF)];
  K *from = keys, *to = spare_keys;
  P *from_payload = payload, *to_payload = spare_payload;
  for (int d = 0; d < digits; ++d) {
    std::int64_t* place = counts.data() + static_cast<std::size_t>(d) * 256;
    if (place[(from[0] >> (8 * d)) & 0xFF] == n) continue;
    std::int64_t total = 0;
    for (int b = 0; b < 256; ++b) total += std::exchange(place[b], total);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = place[(from[i] >> (8 * d)) & 0xFF]++;
      to[at] = from[i];
      if constexpr (!std::is_same_v<P, Nothing>) to_payload[at] = from_payload[i];
    }
    std::swap(from, to);
    std::swap(from_payload, to_payload);
  }
  if (from == keys) return;
  std::memcpy(keys, from, n * sizeof(K));
  if constexpr (!std::is_same_v<P, Nothing>) std::memcpy(payload, from_payload, n * sizeof(P));
}

}  // namespace

template <class K, class P>
void radix_sort(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n) {
  if (n > 1) sort_digits(keys, payload, spare_keys, spare_payload, n);
}
template <class K> void radix_sort(K* keys, K* spare_keys, std::int64_t n) {
  if (n > 1) sort_digits<K, Nothing>(keys, nullptr, spare_keys, nullptr, n);
}

#define TESSERA_RADIX_SORT(K)                                                                       \
  template void radix_sort<K>(K*, K*, std::int64_t);                                                \
  template void radix_sort<K, std::uint32_t>(K*, std::uint32_t*, K*, std::uint32_t*, std::int64_t); \
  template void radix_sort<K, std::int64_t>(K*, std::int64_t*, K*, std::int64_t*, std::int64_t);
TESSERA_RADIX_SORT(std::uint8_t)
TESSERA_RADIX_SORT(std::uint16_t)
TESSERA_RADIX_SORT(std::uint32_t)
TESSERA_RADIX_SORT(std::uint64_t)
#undef TESSERA_RADIX_SORT

}  // namespace tessera::kernels
