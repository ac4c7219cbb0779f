// Random numbers for lanes: a short row of elements that go through rejection rounds together and drop out
// one by one.
#pragma once
#include <algorithm>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/random/draws.hpp"
#include "kernels/random/threefry_vectors.hpp"

namespace tessera::kernels {

template <class T> struct Row {
  alignas(64) T at[batch + padding];  // uninitialised: rows are made for every batch
  T& operator[](std::int64_t i) { return at[i]; }
  const T& operator[](std::int64_t i) const { return at[i]; }
};

template <class T> void apply_map(const Map& map, const T* in, T* out, std::int64_t n) {
  const void* operand = in;
  map.of(dtype_of<T>())(&operand, out, n);
}

// ---- one key per lane ----
struct LaneKeys {
  Row<std::uint32_t> k0, k1;
  void set(std::int64_t lane, Words key) { k0[lane] = key.x0, k1[lane] = key.x1; }
  Words get(std::int64_t lane) const { return {k0[lane], k1[lane]}; }
};

// Key i of split(key, n), n small, for every lane.
inline void split_lanes(const LaneKeys& keys, std::int64_t lanes, std::uint32_t i, std::uint32_t n,
                        Threefry mode, LaneKeys& out) {
  if (mode == Threefry::partitionable) {
    std::fill_n(out.k0.at, lanes, 0u);
    std::fill_n(out.k1.at, lanes, i);
    return hash_keyed_counters(keys.k0.at, keys.k1.at, out.k0.at, out.k1.at, lanes);
  }
  // Key i consists of words 2i and 2i + 1 of the hash of 0 .. 2n - 1, whose halves are hashed as pairs.
  Row<std::uint32_t> x0, x1;
  for (std::uint32_t w = 0; w < 2; ++w) {
    const std::uint32_t word = 2 * i + w, first = word % n;
    std::fill_n(x0.at, lanes, first);
    std::fill_n(x1.at, lanes, first + n);
    hash_keyed_counters(keys.k0.at, keys.k1.at, x0.at, x1.at, lanes);
    std::copy_n(word < n ? x0.at : x1.at, lanes, w == 0 ? out.k0.at : out.k1.at);
  }
}

// A uniform (or normal) scalar per lane, from the lane's key.
template <class T>
void uniform_lanes(const LaneKeys& keys, std::int64_t lanes, Threefry mode, T minval, T maxval, T* out) {
  Row<std::uint32_t> x0, x1;
  std::fill_n(x0.at, lanes, 0u);
  std::fill_n(x1.at, lanes, mode == Threefry::original && sizeof(T) == 8 ? 1u : 0u);
  hash_keyed_counters(keys.k0.at, keys.k1.at, x0.at, x1.at, lanes);
  Row<BitsOf<T>> bits;
  if (mode == Threefry::original && sizeof(T) == 4) std::fill_n(x1.at, lanes, 0u);  // one word of the two
  words_to_bits(x0.at, x1.at, lanes, 8 * sizeof(T), bits.at);
  bits_to_uniform(bits.at, lanes, minval, maxval, out);
}
template <class T> void normal_lanes(const LaneKeys& keys, std::int64_t lanes, Threefry mode, T* out) {
  uniform_lanes<T>(keys, lanes, mode, static_cast<T>(after_minus_one(dtype_of<T>())), T(1), out);
  uniform_to_normal(out, lanes);
}

// ---- one key for all lanes: lane i gets element position[i] of a draw of `total` elements ----
template <class T> void uniform_at(Words key, const std::uint64_t* position, std::int64_t lanes,
                                   std::int64_t total, Threefry mode, T* out) {
  Row<BitsOf<T>> bits;
  if (mode == Threefry::partitionable) {
    Row<std::uint32_t> x0, x1;
    for (std::int64_t i = 0; i < lanes; ++i)
      x0[i] = static_cast<std::uint32_t>(position[i] >> 32), x1[i] = static_cast<std::uint32_t>(position[i]);
    hash_counters(key.x0, key.x1, x0.at, x1.at, lanes);
    words_to_bits(x0.at, x1.at, lanes, 8 * sizeof(T), bits.at);
  } else {
    for (std::int64_t i = 0; i < lanes; ++i)
      threefry_original_bits(key.x0, key.x1, total, static_cast<std::int64_t>(position[i]), 1, 8 * sizeof(T),
                             &bits[i]);
  }
  bits_to_uniform(bits.at, lanes, T(0), T(1), out);
}

// Keeps the lanes for which keep(i) is true, in order, in every given row; returns their number.
template <class Keep, class... Rows> std::int64_t compact(std::int64_t lanes, Keep&& keep, Rows&... rows) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < lanes; ++i) {
    if (!keep(i)) continue;
    ((rows[kept] = rows[i]), ...);
    ++kept;
  }
  return kept;
}

}  // namespace tessera::kernels
