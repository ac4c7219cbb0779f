// Counter-based random bits: Threefry-2x32 with 20 rounds (Salmon et al., SC'11), in the layout that JAX
// uses.
//
// An element's bits depend only on the key and on its row-major position in the global array: every rank
// computes its own box, and the values are the same for every sharding.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstdint>
#include <span>

#include "types/box.hpp"

namespace tessera::kernels {

struct Words {
  std::uint32_t x0, x1;
  friend bool operator==(const Words&, const Words&) = default;
};
Words threefry2x32(std::uint32_t k0, std::uint32_t k1, std::uint32_t c0, std::uint32_t c1);

// Hashes the counters start + i, i < n, as (high, low) words and returns both words. out[i] is key start + i
// of split().
void threefry_counters(std::uint32_t k0, std::uint32_t k1, std::uint64_t start, std::int64_t n, Words* out);

// Bits of the elements of `box` of a global array. width 8, 16, 32 or 64 (out: unsigned integers of that
// width, dense over the box).
void threefry_block(std::uint32_t k0, std::uint32_t k1, const Box& box, const Shape& global, int width,
                    void* out);

// Bits of the older, non-partitionable mode: elements [start, start + count) of an array of `total` elements.
void threefry_original_bits(std::uint32_t k0, std::uint32_t k1, std::int64_t total, std::int64_t start,
                            std::int64_t count, int width, void* out);

// One key per row: row r of out (n elements each) is the bits of elements [start, start + n) under keys[r].
void threefry_rows(std::span<const Words> keys, std::uint64_t start, std::int64_t n, int width, void* out);

// float32 or float64 in [minval, maxval), and the standard normal (sqrt(2) * erf_inv of a uniform in (-1,
// 1)).
void uniform_block(std::uint32_t k0, std::uint32_t k1, const Box& box, const Shape& global, Dtype,
                   double minval, double maxval, void* out);
void normal_block(std::uint32_t k0, std::uint32_t k1, const Box& box, const Shape& global, Dtype, void* out);

}  // namespace tessera::kernels
