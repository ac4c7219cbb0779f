#include "kernels/random/threefry.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/random/counter_runs.hpp"
#include "kernels/random/threefry_vectors.hpp"

namespace tessera::kernels {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Hashes the counters of a box batch by batch; use(counters, done) sees the hash words of elements [done,
// done + counters.n) of the box.
template <class F> void for_each_batch(u32 k0, u32 k1, const Box& box, const Shape& global, F&& use) {
  const std::int64_t total = box_elements(box);
  if (total == 0) return;
  BoxRuns runs(box, global);
  Counters counters;
  for (std::int64_t done = 0; done < total; done += counters.n) {
    counters.n = 0;
    while (counters.n < batch && !runs.done()) counters.push(runs.take(batch - counters.n));
    hash_counters(k0, k1, counters.x0, counters.x1, counters.n);
    use(counters, done);
  }
}

void check_width(int width) {
  if (width != 8 && width != 16 && width != 32 && width != 64)
    throw ArgumentError("random bits: width is " + std::to_string(width) + "; 8, 16, 32 and 64 are possible");
}

// Words [start, start + count) of the array hash of iota(words): counters in two halves, word i of the first
// half with word i of the second; an odd count is padded with a 0.
void original_words(u32 k0, u32 k1, u64 words, u64 start, std::int64_t count, u32* out) {
  const u64 half = (words + 1) / 2;
  Counters counters;
  for (std::int64_t done = 0; done < count; done += counters.n) {
    counters.n = std::min(batch, count - done);
    for (std::int64_t i = 0; i < counters.n; ++i) {
      const u64 word = start + static_cast<u64>(done + i), first = word < half ? word : word - half,
                second = first + half;
      counters.x0[i] = static_cast<u32>(first);
      counters.x1[i] = second < words ? static_cast<u32>(second) : 0;
    }
    hash_counters(k0, k1, counters.x0, counters.x1, counters.n);
    for (std::int64_t i = 0; i < counters.n; ++i)
      out[done + i] = start + static_cast<u64>(done + i) < half ? counters.x0[i] : counters.x1[i];
  }
}

// The same for any number of words: beyond 2^32 - 1, each block of that many words has its own key.
void original_words_in_blocks(u32 k0, u32 k1, u64 words, u64 start, std::int64_t count, u32* out) {
  constexpr u64 block = std::numeric_limits<u32>::max();
  const u64 blocks = words / block;
  if (blocks == 0) return original_words(k0, k1, words, start, count, out);
  while (count > 0) {
    const u64 b = start / block, within = start % block, in_block = b < blocks ? block : words % block;
    const std::int64_t part = std::min<std::int64_t>(count, static_cast<std::int64_t>(in_block - within));
    u32 key[2];
    original_words(k0, k1, 2 * (blocks + 1), 2 * b, 2, key);
    original_words(key[0], key[1], in_block, within, part, out);
    start += static_cast<u64>(part), count -= part, out += part;
  }
}

}  // namespace

Words threefry2x32(u32 k0, u32 k1, u32 c0, u32 c1) {
  hash_counters(k0, k1, &c0, &c1, 1);
  return {c0, c1};
}

void threefry_counters(u32 k0, u32 k1, u64 start, std::int64_t n, Words* out) {
  Counters counters;
  for (std::int64_t done = 0; done < n; done += counters.n) {
    counters.n = 0;
    counters.push({start + static_cast<u64>(done), std::min(batch, n - done)});
    hash_counters(k0, k1, counters.x0, counters.x1, counters.n);
    for (std::int64_t i = 0; i < counters.n; ++i) out[done + i] = {counters.x0[i], counters.x1[i]};
  }
}

void threefry_block(u32 k0, u32 k1, const Box& box, const Shape& global, int width, void* out) {
  check_width(width);
  for_each_batch(k0, k1, box, global, [&](const Counters& counters, std::int64_t done) {
    words_to_bits(counters.x0, counters.x1, counters.n, width,
                  static_cast<std::byte*>(out) + done * (width / 8));
  });
}

void threefry_rows(std::span<const Words> keys, u64 start, std::int64_t n, int width, void* out) {
  check_width(width);
  if (n <= 0) return;
  alignas(64) u32 k0[batch + padding], k1[batch + padding];
  Counters counters;
  auto* to = static_cast<std::byte*>(out);
  const auto flush = [&] {
    hash_keyed_counters(k0, k1, counters.x0, counters.x1, counters.n);
    words_to_bits(counters.x0, counters.x1, counters.n, width, to);
    to += counters.n * (width / 8);
    counters.n = 0;
  };
  for (const auto& key : keys)
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t count = std::min(n - done, batch - counters.n);
      std::fill_n(k0 + counters.n, count, key.x0);
      std::fill_n(k1 + counters.n, count, key.x1);
      counters.push({start + static_cast<u64>(done), count});
      done += count;
      if (counters.n == batch) flush();
    }
  flush();
}

void threefry_original_bits(u32 k0, u32 k1, std::int64_t total, std::int64_t start, std::int64_t count,
                            int width, void* out) {
  check_width(width);
  if (count <= 0) return;
  const auto first = static_cast<u64>(start), elements = static_cast<u64>(total);
  if (width == 32) return original_words_in_blocks(k0, k1, elements, first, count, static_cast<u32*>(out));
  if (width == 64) {
    std::vector<u32> high(count), low(count);
    original_words_in_blocks(k0, k1, 2 * elements, first, count, high.data());
    original_words_in_blocks(k0, k1, 2 * elements, elements + first, count, low.data());
    for (std::int64_t i = 0; i < count; ++i) static_cast<u64*>(out)[i] = u64{high[i]} << 32 | low[i];
    return;
  }
  // A word holds several elements, the low bits first: these are the bytes of the words in little-endian
  // order.
  const auto bytes = static_cast<u64>(width / 8);
  const u64 words = (elements * bytes + 3) / 4, first_word = first * bytes / 4,
            last_word = ((first + static_cast<u64>(count)) * bytes + 3) / 4;
  std::vector<u32> buffer(last_word - first_word);
  original_words_in_blocks(k0, k1, words, first_word, static_cast<std::int64_t>(buffer.size()),
                           buffer.data());
  std::memcpy(out, reinterpret_cast<const std::byte*>(buffer.data()) + (first * bytes - first_word * 4),
              static_cast<u64>(count) * bytes);
}

}  // namespace tessera::kernels
