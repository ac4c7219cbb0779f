/// @file
/// bfloat16_t and float16_t: elements of the two 16-bit floating-point dtypes.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera {

namespace detail {

// Rounds to odd: x is truncated to a float, whose last bit is set if that was inexact. Rounding the result to
// fewer digits then gives the same as rounding x directly.
constexpr float odd_float(double x) {
  const auto nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  const bool is_beyond = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (is_beyond ? 1U : 0U)) | 1U);
}
constexpr float odd_float(std::uint64_t x) {
  const int dropped = static_cast<int>(std::bit_width(x)) - std::numeric_limits<float>::digits;
  if (dropped <= 0) return static_cast<float>(x);
  const std::uint64_t kept = x >> dropped, rest = x & ((std::uint64_t{1} << dropped) - 1);
  const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(127 + dropped) << 23);
  return static_cast<float>(kept | (rest != 0 ? 1U : 0U)) * scale;
}
template <class N> constexpr float odd_float_of(N x) {
  if constexpr (std::is_same_v<N, float>)
    return x;
  else if constexpr (std::is_floating_point_v<N>)
    return odd_float(static_cast<double>(x));
  else if constexpr (std::is_unsigned_v<N>)
    return odd_float(static_cast<std::uint64_t>(x));
  else
    return x < 0 ? -odd_float(~static_cast<std::uint64_t>(x) + 1) : odd_float(static_cast<std::uint64_t>(x));
}

// The two formats: conversions without branches, so that loops vectorize. Rounding is to nearest even; NaN
// stays NaN.
struct Bfloat16 {
  static constexpr int digits = 8, max_digits10 = 4, max_exponent = 128, max_exponent10 = 38,
                       min_exponent10 = -37;
  static constexpr float widen(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static constexpr std::uint16_t narrow(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, quiet = bits >> 16 | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
  }
};
struct Float16 {
  static constexpr int digits = 11, max_digits10 = 5, max_exponent = 16, max_exponent10 = 4,
                       min_exponent10 = -4;
  static constexpr float widen(std::uint16_t bits) {
    const std::uint32_t size = bits & 0x7fffU, sign = (bits & 0x8000U) << 16;
    const std::uint32_t normal = (size << 13) + (112U << 23), special = size << 13 | 0x7f800000U;
    const auto subnormal =
        std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(size)) * 0x1p-24F);
    return std::bit_cast<float>((size < 0x400U ? subnormal : size < 0x7c00U ? normal : special) | sign);
  }
  static constexpr std::uint16_t narrow(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t size = bits & 0x7fffffffU, sign = bits >> 16 & 0x8000U;
    const std::uint32_t normal = (size + 0xfffU + (size >> 13 & 1U) - (112U << 23)) >> 13;
    // Near 0.5 floats have the spacing of float16's subnormal numbers, so the addition rounds.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
    const std::uint32_t quiet = (size >> 13 & 0x3ffU) | 0x7e00U;
    const std::uint32_t rounded = size < 0x38800000U ? subnormal : size < 0x477ff000U ? normal : 0x7c00U;
    return static_cast<std::uint16_t>((size > 0x7f800000U ? quiet : rounded) | sign);
  }
};

}  // namespace detail

/// An element of a 16-bit floating-point dtype. Arithmetic is in float; numbers are rounded to nearest even,
/// once, and NaN stays NaN.
template <class Format> class Half {
 public:
  Half() = default;
  /// The nearest value to x; infinity beyond the largest.
  template <class N>
  requires std::is_arithmetic_v<N>
  constexpr explicit Half(N x) : bits_(Format::narrow(detail::odd_float_of(x))) {}
  constexpr operator float() const { return Format::widen(bits_); }  ///< exact
  constexpr std::uint16_t bits() const { return bits_; }             ///< the stored bits
  /// The element with these stored bits.
  static constexpr Half from_bits(std::uint16_t bits) {
    Half x{};
    x.bits_ = bits;
    return x;
  }

 private:
  std::uint16_t bits_;
};
/// An element of dtype bfloat16: the upper half of a float, with 8 significant bits and float's range.
using bfloat16_t = Half<detail::Bfloat16>;
/// An element of dtype float16: IEEE 754's binary16, 11 significant bits, at most 65504.
using float16_t = Half<detail::Float16>;

}  // namespace tessera

/// Limits of bfloat16 and float16.
template <class Format> class std::numeric_limits<tessera::Half<Format>> : public std::numeric_limits<float> {
  using T = tessera::Half<Format>;
  static constexpr int one_exponent = 1 << (Format::digits - 1), infinite = 0x7fff & -one_exponent;
  static constexpr T from(int bits) { return T::from_bits(static_cast<std::uint16_t>(bits)); }

 public:
  static constexpr int digits = Format::digits, digits10 = (digits - 1) * 301 / 1000;
  static constexpr int max_digits10 = Format::max_digits10;
  static constexpr int max_exponent = Format::max_exponent, min_exponent = 3 - max_exponent;
  static constexpr int max_exponent10 = Format::max_exponent10, min_exponent10 = Format::min_exponent10;
  static constexpr T min() noexcept { return from(one_exponent); }
  static constexpr T max() noexcept { return from(infinite - 1); }
  static constexpr T lowest() noexcept { return from(0x8000 | (infinite - 1)); }
  static constexpr T denorm_min() noexcept { return from(1); }
  static constexpr T infinity() noexcept { return from(infinite); }
  static constexpr T quiet_NaN() noexcept { return from(infinite | one_exponent / 2); }
  static constexpr T signaling_NaN() noexcept { return from(infinite | one_exponent / 4); }
  static constexpr T epsilon() noexcept { return T(1.0 / one_exponent); }
  static constexpr T round_error() noexcept { return T(0.5); }
};
