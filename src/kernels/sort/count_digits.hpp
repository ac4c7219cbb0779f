// Counts digits of order keys (order_key.hpp): a round of a selection that reads its elements once a round.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <span>

namespace tessera::kernels {

constexpr int digit_bits = 16;
constexpr std::int64_t digit_count = std::int64_t{1} << digit_bits;

// out[p, d]: how many of n float32 or float64 elements have prefixes[p] as the upper digits of their keys and
// d as the next one; the digits below it have `shift` bits. Without upper digits every prefix is 0.
void count_digits(Dtype, const void* x, std::int64_t n, std::span<const std::uint64_t> prefixes, int shift,
                  std::int64_t* out);

}  // namespace tessera::kernels
