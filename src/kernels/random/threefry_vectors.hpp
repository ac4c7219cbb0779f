// The vector loops of threefry.cpp, on short arrays in the cache.
#pragma once
#include <cstdint>

namespace tessera::kernels {

// (x0[i], x1[i]) = hash of the counter (x0[i], x1[i]) under one key, or under key (k0[i], k1[i]).
void hash_counters(std::uint32_t k0, std::uint32_t k1, std::uint32_t* x0, std::uint32_t* x1, std::int64_t n);
void hash_keyed_counters(const std::uint32_t* k0, const std::uint32_t* k1, std::uint32_t* x0,
                         std::uint32_t* x1, std::int64_t n);

// Bits of width 8, 16, 32 or 64 from the two words of a hash.
void words_to_bits(const std::uint32_t* x0, const std::uint32_t* x1, std::int64_t n, int width, void* out);

// Bits to floats: the top mantissa bits under the exponent of [1, 2), minus 1, scaled to [minval, maxval).
void bits_to_uniform(const std::uint32_t* bits, std::int64_t n, float minval, float maxval, float* out);
void bits_to_uniform(const std::uint64_t* bits, std::int64_t n, double minval, double maxval, double* out);
// sqrt(2) * erf_inv(uniform in (-1, 1)), in place.
void uniform_to_normal(float* values, std::int64_t n);
void uniform_to_normal(double* values, std::int64_t n);

// Remainders by a divisor > 1 that is fixed in advance: the quotient taken from the high half of a product
// with 2^32 / divisor is exact or one too small.
struct Divisor32 {
  std::uint32_t divisor, inverse;
  explicit Divisor32(std::uint32_t d)
      : divisor(d), inverse(static_cast<std::uint32_t>((std::uint64_t{1} << 32) / d)) {}
};
// first + (high % span * scale + low % span) % span, in 32 bits.
void words_to_integers(const std::uint32_t* high, const std::uint32_t* low, std::int64_t n, Divisor32 span,
                       std::uint32_t scale, std::uint32_t first, std::uint32_t* out);

}  // namespace tessera::kernels
