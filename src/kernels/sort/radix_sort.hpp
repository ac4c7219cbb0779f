// Radix sort of unsigned keys with a payload: the highest digits first while parts exceed the cache. Stable.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// Sorts keys[0..n) ascending and permutes the payload likewise (P: std::uint32_t or std::int64_t). The spare
// arrays are scratch of n elements.
template <class K, class P>
void radix_sort(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n);
// Sorts keys without a payload.
template <class K> void radix_sort(K* keys, K* spare_keys, std::int64_t n);

}  // namespace tessera::kernels
