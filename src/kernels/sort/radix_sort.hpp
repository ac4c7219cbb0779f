// Radix sort of unsigned keys with a payload: the highest digits first while parts exceed the cache. Stable.
#pragma once
#include <cstddef>
#include <cstdint>

#include "types/pooled.hpp"

namespace tessera::kernels {

// Sorts keys[0..n) ascending and permutes the payload likewise (P: std::uint32_t or std::int64_t). The
// scratch grows to what is needed.
template <class K, class P> void radix_sort(K* keys, P* payload, std::int64_t n, Pooled<std::byte>& scratch);
// Sorts keys without a payload.
template <class K> void radix_sort(K* keys, std::int64_t n, Pooled<std::byte>& scratch);

}  // namespace tessera::kernels
