#include "kernels/sort/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thresholds.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

struct Nothing {};

constexpr std::int64_t shared_from = 1 << 15;  // elements for each thread

// Moves elements [begin, end) to the next output position of their digit d, and advances it.
template <class K, class P> void move_by_digit(const K* from, const P* from_payload, std::int64_t begin,
                                               std::int64_t end, int d, std::int64_t* place, K* to,
                                               P* to_payload) {
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t at = place[(from[i] >> (8 * d)) & 0xFF]++;
    to[at] = from[i];
    if constexpr (!std::is_same_v<P, Nothing>) to_payload[at] = from_payload[i];
  }
}

// The same on several threads, each with a part of the elements. For each digit the first part's positions
// come first, so the order is that of one thread.
template <class K, class P>
void sort_digits_in_parts(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n, int parts) {
  using Counts = std::array<std::int64_t, 256>;
  std::vector<Counts> counts(parts);
  K *from = keys, *to = spare_keys;
  P *from_payload = payload, *to_payload = spare_payload;
  const auto for_parts = [&](auto&& work) {
    share(parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p) work(p, n * p / parts, n * (p + 1) / parts);
    });
  };
  for (int d = 0; d < static_cast<int>(sizeof(K)); ++d) {
    for_parts([&](std::int64_t p, std::int64_t begin, std::int64_t end) {
      Counts own{};
      for (std::int64_t i = begin; i < end; ++i) ++own[(from[i] >> (8 * d)) & 0xFF];
      counts[p] = own;
    });
    std::int64_t shared_by_all = 0, total = 0;
    for (const Counts& own : counts) shared_by_all += own[(from[0] >> (8 * d)) & 0xFF];
    if (shared_by_all == n) continue;
    for (int b = 0; b < 256; ++b)
      for (Counts& own : counts) total += std::exchange(own[b], total);
    for_parts([&](std::int64_t p, std::int64_t begin, std::int64_t end) {
      Counts place = counts[p];
      move_by_digit(from, from_payload, begin, end, d, place.data(), to, to_payload);
    });
    std::swap(from, to);
    std::swap(from_payload, to_payload);
  }
  if (from == keys) return;
  for_parts([&](std::int64_t, std::int64_t begin, std::int64_t end) {
    std::copy(from + begin, from + end, keys + begin);
    if constexpr (!std::is_same_v<P, Nothing>)
      std::copy(from_payload + begin, from_payload + end, payload + begin);
  });
}

// 8-bit digits: 256 write streams still fit the L1 cache and TLB; a digit that all keys share needs no pass.
template <class K, class P>
void sort_digits(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n) {
  constexpr int digits = static_cast<int>(sizeof(K));
  const int parts = static_cast<int>(std::clamp<std::int64_t>(n / threshold(shared_from), 1, threads()));
  if (parts > 1) return sort_digits_in_parts(keys, payload, spare_keys, spare_payload, n, parts);
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
    move_by_digit(from, from_payload, 0, n, d, place, to, to_payload);
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
