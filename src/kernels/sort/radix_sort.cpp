#include "kernels/sort/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <bit>
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
constexpr std::int64_t few_elements = 24;      // elements that are sorted by insertion
constexpr std::int64_t cached_bytes = 1 << 18;
constexpr int lowest_digits = 3;  // with more digits, sorting from the highest is faster

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

using DigitCounts = std::array<std::int64_t, 256>;

// Four tables: an increment need not wait for one of the same digit.
template <class K> DigitCounts count_digits(const K* keys, std::int64_t n, int d) {
  DigitCounts tables[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int t = 0; t < 4; ++t) ++tables[t][(keys[i + t] >> (8 * d)) & 0xFF];
  for (; i < n; ++i) ++tables[0][(keys[i] >> (8 * d)) & 0xFF];
  for (int b = 0; b < 256; ++b) tables[0][b] += tables[1][b] + tables[2][b] + tables[3][b];
  return tables[0];
}

// Elements with their payload, and as much scratch. A sort leaves them where they are, or in the scratch.
template <class K, class P> struct Piece {
  K* keys;
  P* payload;
  K* spare_keys;
  P* spare_payload;
  std::int64_t n;

  static constexpr bool has_payload = !std::is_same_v<P, Nothing>;
  static constexpr std::int64_t item = sizeof(K) + (has_payload ? sizeof(P) : 0);
  Piece turned() const { return {spare_keys, spare_payload, keys, payload, n}; }
  Piece part(std::int64_t begin, std::int64_t end) const {
    if constexpr (has_payload)
      return {keys + begin, payload + begin, spare_keys + begin, spare_payload + begin, end - begin};
    else
      return {keys + begin, nullptr, spare_keys + begin, nullptr, end - begin};
  }
  void move_to_spare() const {
    std::memcpy(spare_keys, keys, n * sizeof(K));
    if constexpr (has_payload) std::memcpy(spare_payload, payload, n * sizeof(P));
  }
};

template <class K, class P> void sort_few(const Piece<K, P>& x, bool to_spare) {
  K* const keys = to_spare ? x.spare_keys : x.keys;
  P* const payload = to_spare ? x.spare_payload : x.payload;
  for (std::int64_t i = 0; i < x.n; ++i) {
    const K key = x.keys[i];
    P carried{};
    if constexpr (Piece<K, P>::has_payload) carried = x.payload[i];
    std::int64_t at = i;
    for (; at > 0 && key < keys[at - 1]; --at) {
      keys[at] = keys[at - 1];
      if constexpr (Piece<K, P>::has_payload) payload[at] = payload[at - 1];
    }
    keys[at] = key;
    if constexpr (Piece<K, P>::has_payload) payload[at] = carried;
  }
}

// Spreads few elements over as many places by the highest bits in which they differ, then sorts by insertion:
// keys that are spread evenly need one pass instead of one for each digit. False, and nothing done, if many
// share places.
template <class K, class P> bool sort_by_places(const Piece<K, P>& x, bool to_spare) {
  constexpr int most_bits = 12;
  constexpr std::int64_t most_elements = 2 << most_bits, most_shared = 4;
  if (x.n > most_elements) return false;
  K differing = 0;
  for (std::int64_t i = 1; i < x.n; ++i) differing |= x.keys[i] ^ x.keys[0];
  const int bits_left = std::bit_width(differing),
            bits = std::min({bits_left, most_bits, static_cast<int>(std::bit_width(static_cast<K>(x.n)))}),
            shift = bits_left - bits;
  const auto mask = (std::uint32_t{1} << bits) - 1;
  const auto place_of = [&](std::int64_t i) { return static_cast<std::uint32_t>(x.keys[i] >> shift) & mask; };
  std::uint32_t places[1 << most_bits];
  std::fill_n(places, mask + 1, 0U);
  for (std::int64_t i = 0; i < x.n; ++i) ++places[place_of(i)];
  std::uint64_t pairs = 0;
  for (std::uint32_t p = 0; p <= mask; ++p) pairs += std::uint64_t{places[p]} * places[p];
  if (pairs > static_cast<std::uint64_t>(most_shared * x.n)) return false;
  std::uint32_t total = 0;
  for (std::uint32_t p = 0; p <= mask; ++p) total += std::exchange(places[p], total);
  for (std::int64_t i = 0; i < x.n; ++i) {
    const std::uint32_t at = places[place_of(i)]++;
    x.spare_keys[at] = x.keys[i];
    if constexpr (Piece<K, P>::has_payload) x.spare_payload[at] = x.payload[i];
  }
  sort_few(x.turned(), !to_spare);
  return true;
}

// Sorts from the lowest digit to digit `top`; a digit that all keys share needs no pass.
template <class K, class P> void sort_from_lowest(Piece<K, P> x, int top, bool to_spare) {
  std::array<DigitCounts, lowest_digits> places{};
  for (std::int64_t i = 0; i < x.n; ++i)
    for (int d = 0; d <= top; ++d) ++places[d][(x.keys[i] >> (8 * d)) & 0xFF];
  bool is_in_spare = false;
  for (int d = 0; d <= top; ++d) {
    DigitCounts& place = places[d];
    if (place[(x.keys[0] >> (8 * d)) & 0xFF] == x.n) continue;
    std::int64_t total = 0;
    for (std::int64_t& p : place) total += std::exchange(p, total);
    move_by_digit(x.keys, x.payload, 0, x.n, d, place.data(), x.spare_keys, x.spare_payload);
    x = x.turned();
    is_in_spare = !is_in_spare;
  }
  if (is_in_spare != to_spare) x.move_to_spare();
}

// Sorts by digit `top` first, until parts fit the cache: memory is then passed over once or twice, not once
// for each digit. 8-bit digits: 256 write streams still fit the TLB.
template <class K, class P> void sort_from_highest(const Piece<K, P>& x, int top, bool to_spare) {
  if (x.n <= few_elements) return sort_few(x, to_spare);
  // A piece of a longer sort has a digit less: of 32 bits, a large one has them sorted sooner.
  const bool is_whole = top == static_cast<int>(sizeof(K)) - 1, is_small = x.n <= 1024;
  if ((is_whole || is_small || sizeof(K) > 4) && sort_by_places(x, to_spare)) return;
  if (top < lowest_digits && x.n * x.item <= cached_bytes) return sort_from_lowest(x, top, to_spare);
  DigitCounts place = count_digits(x.keys, x.n, top);
  if (place[(x.keys[0] >> (8 * top)) & 0xFF] == x.n) {
    if (top > 0) return sort_from_highest(x, top - 1, to_spare);
    if (to_spare) x.move_to_spare();
    return;
  }
  std::int64_t total = 0;
  for (std::int64_t& p : place) total += std::exchange(p, total);
  move_by_digit(x.keys, x.payload, 0, x.n, top, place.data(), x.spare_keys, x.spare_payload);
  const Piece<K, P> moved = x.turned();
  if (top == 0) {
    if (!to_spare) moved.move_to_spare();
    return;
  }
  for (std::int64_t b = 0, begin = 0; b < 256; begin = place[b++])
    if (place[b] > begin) sort_from_highest(moved.part(begin, place[b]), top - 1, !to_spare);
}

// Keys of which many are equal, without a payload, are counted and written again.
template <class K> void sort_by_counts(K* keys, std::int64_t n) {
  std::vector<std::int64_t> counts(std::size_t{1} << (8 * sizeof(K)));
  for (std::int64_t i = 0; i < n; ++i) ++counts[keys[i]];
  for (std::size_t key = 0; key < counts.size(); ++key)
    keys = std::fill_n(keys, counts[key], static_cast<K>(key));
}

template <class K, class P>
void sort_digits(K* keys, P* payload, K* spare_keys, P* spare_payload, std::int64_t n) {
  const int parts = static_cast<int>(std::clamp<std::int64_t>(n / threshold(shared_from), 1, threads()));
  if (parts > 1) return sort_digits_in_parts(keys, payload, spare_keys, spare_payload, n, parts);
  if constexpr (sizeof(K) <= 2 && std::is_same_v<P, Nothing>)
    if (n >= std::int64_t{1} << (8 * sizeof(K))) return sort_by_counts(keys, n);
  sort_from_highest<K, P>({keys, payload, spare_keys, spare_payload, n}, sizeof(K) - 1, false);
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
