#include "kernels/sort/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thresholds.hpp"
#include "kernels/move/stream.hpp"
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

// The scratch is memory of as many keys and payloads; the larger come first.
template <class K, class P> Piece<K, P> piece(K* keys, P* payload, std::int64_t n, void* scratch) {
  auto* const first = static_cast<std::byte*>(scratch);
  if constexpr (sizeof(K) < sizeof(P))
    return {keys, payload, reinterpret_cast<K*>(first + n * sizeof(P)), reinterpret_cast<P*>(first), n};
  return {keys, payload, reinterpret_cast<K*>(first), reinterpret_cast<P*>(first + n * sizeof(K)), n};
}

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

// A key beside its payload, and as many as are stored together.
template <class K, class P> struct alignas(2 * std::max(sizeof(K), sizeof(P))) Pair {
  K key;
  P payload;
};
template <class K, class P> struct alignas(64) Line {
  static constexpr std::int64_t size = 64 / sizeof(Pair<K, P>);
  Pair<K, P> pairs[size];
};

// Moves pairs to their places. `ends`: the count of each place, then its end. Full lines go past the cache:
// of so many places, no line would still be in it when its place is next.
template <class K, class P, class PlaceOf>
void spread(const Piece<K, P>& x, PlaceOf place_of, std::span<std::int64_t> ends, Pair<K, P>* to) {
  constexpr std::int64_t in_line = Line<K, P>::size;
  std::vector<std::int64_t> begins(ends.size());
  std::int64_t total = 0;
  for (std::size_t p = 0; p < ends.size(); ++p) total += std::exchange(ends[p], begins[p] = total);
  Pooled<Line<K, P>> lines(std::ssize(ends));
  const auto write_part = [&](std::int64_t p, std::int64_t end) {  // lines that places share
    const std::int64_t first = (end - 1) / in_line * in_line;
    for (std::int64_t i = std::max(first, begins[p]); i < end; ++i) to[i] = lines[p].pairs[i - first];
  };
  for (std::int64_t i = 0; i < x.n; ++i) {
    const auto p = static_cast<std::int64_t>(place_of(x.keys[i]));
    const std::int64_t at = ends[p]++, within = at % in_line;
    lines[p].pairs[within] = {x.keys[i], x.payload[i]};
    if (within < in_line - 1) continue;
    if (at - within < begins[p])
      write_part(p, at + 1);
    else
      stream_copy(reinterpret_cast<std::byte*>(to + at - within), reinterpret_cast<std::byte*>(&lines[p]),
                  64);
  }
  for (std::int64_t p = 0; p < std::ssize(ends); ++p)
    if (ends[p] % in_line != 0 && ends[p] > begins[p]) write_part(p, ends[p]);
  finish_streaming();
}

// Spreads many pairs by the highest bits in which they differ, over places that fit the cache: memory is then
// passed over once, whatever the number of digits.
template <class K, class P>
void sort_by_many_places(K* keys, P* payload, std::int64_t n, Pooled<std::byte>& scratch) {
  constexpr int most_bits = 12;
  constexpr std::int64_t wanted = 1024;  // pairs of a place
  K differing = 0;
  for (std::int64_t i = 1; i < n; ++i) differing |= keys[i] ^ keys[0];
  const int bits_left = std::bit_width(differing),
            bits =
                std::min({bits_left, most_bits, static_cast<int>(std::bit_width(std::uint64_t(n / wanted)))}),
            shift = bits_left - bits;
  if (bits == 0) return;
  const auto place_of = [shift, mask = (std::size_t{1} << bits) - 1](K key) { return (key >> shift) & mask; };
  std::vector<std::int64_t> ends(std::size_t{1} << bits);
  for (std::int64_t i = 0; i < n; ++i) ++ends[place_of(keys[i])];
  scratch.resize(n * static_cast<std::int64_t>(sizeof(Pair<K, P>)));
  auto* const pairs = reinterpret_cast<Pair<K, P>*>(scratch.data());
  spread({keys, payload, nullptr, nullptr, n}, place_of, ends, pairs);
  for (std::int64_t begin = 0; const std::int64_t end : ends) {
    for (std::int64_t i = begin; i < end; ++i) keys[i] = pairs[i].key, payload[i] = pairs[i].payload;
    const auto own = piece(keys + begin, payload + begin, end - begin, pairs + begin);
    if (shift > 0 && own.n > 1 && !sort_by_places(own, false)) sort_from_highest(own, (shift - 1) / 8, false);
    begin = end;
  }
}

// Sorts from the lowest digit on several threads, each with a part of the elements. For each digit the first
// part's positions come first, so the order is that of one thread.
template <class K, class P> void sort_digits_in_parts(const Piece<K, P>& x, int parts) {
  std::vector<DigitCounts> counts(parts);
  Piece<K, P> now = x;
  const auto for_parts = [&](auto&& work) {
    share(parts, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p) work(p, x.n * p / parts, x.n * (p + 1) / parts);
    });
  };
  for (int d = 0; d < static_cast<int>(sizeof(K)); ++d) {
    for_parts([&](std::int64_t p, std::int64_t begin, std::int64_t end) {
      DigitCounts own{};
      for (std::int64_t i = begin; i < end; ++i) ++own[(now.keys[i] >> (8 * d)) & 0xFF];
      counts[p] = own;
    });
    std::int64_t shared_by_all = 0, total = 0;
    for (const DigitCounts& own : counts) shared_by_all += own[(now.keys[0] >> (8 * d)) & 0xFF];
    if (shared_by_all == x.n) continue;
    for (int b = 0; b < 256; ++b)
      for (DigitCounts& own : counts) total += std::exchange(own[b], total);
    for_parts([&](std::int64_t p, std::int64_t begin, std::int64_t end) {
      DigitCounts place = counts[p];
      move_by_digit(now.keys, now.payload, begin, end, d, place.data(), now.spare_keys, now.spare_payload);
    });
    now = now.turned();
  }
  if (now.keys == x.keys) return;
  for_parts(
      [&](std::int64_t, std::int64_t begin, std::int64_t end) { now.part(begin, end).move_to_spare(); });
}

// Keys of which many are equal, without a payload, are counted and written again.
template <class K> void sort_by_counts(K* keys, std::int64_t n) {
  std::vector<std::int64_t> counts(std::size_t{1} << (8 * sizeof(K)));
  for (std::int64_t i = 0; i < n; ++i) ++counts[keys[i]];
  for (std::size_t key = 0; key < counts.size(); ++key)
    keys = std::fill_n(keys, counts[key], static_cast<K>(key));
}

template <class K, class P>
void sort_digits(K* keys, P* payload, std::int64_t n, Pooled<std::byte>& scratch) {
  constexpr std::int64_t many = sizeof(K) << 18;
  const int parts = static_cast<int>(std::clamp<std::int64_t>(n / threshold(shared_from), 1, threads()));
  if constexpr (sizeof(K) <= 2 && std::is_same_v<P, Nothing>)
    if (parts == 1 && n >= std::int64_t{1} << (8 * sizeof(K))) return sort_by_counts(keys, n);
  if constexpr (sizeof(K) > 2 && !std::is_same_v<P, Nothing>)
    if (parts == 1 && n >= threshold(many, 2048)) return sort_by_many_places(keys, payload, n, scratch);
  scratch.resize(n * Piece<K, P>::item);
  const auto x = piece(keys, payload, n, scratch.data());
  parts > 1 ? sort_digits_in_parts(x, parts) : sort_from_highest(x, sizeof(K) - 1, false);
}

}  // namespace

template <class K, class P> void radix_sort(K* keys, P* payload, std::int64_t n, Pooled<std::byte>& scratch) {
  if (n > 1) sort_digits(keys, payload, n, scratch);
}
template <class K> void radix_sort(K* keys, std::int64_t n, Pooled<std::byte>& scratch) {
  if (n > 1) sort_digits<K, Nothing>(keys, nullptr, n, scratch);
}

#define TESSERA_RADIX_SORT(K)                                                                       \
  template void radix_sort<K>(K*, std::int64_t, Pooled<std::byte>&);                                \
  template void radix_sort<K, std::uint32_t>(K*, std::uint32_t*, std::int64_t, Pooled<std::byte>&); \
  template void radix_sort<K, std::int64_t>(K*, std::int64_t*, std::int64_t, Pooled<std::byte>&);
TESSERA_RADIX_SORT(std::uint8_t)
TESSERA_RADIX_SORT(std::uint16_t)
TESSERA_RADIX_SORT(std::uint32_t)
TESSERA_RADIX_SORT(std::uint64_t)
#undef TESSERA_RADIX_SORT

}  // namespace tessera::kernels
