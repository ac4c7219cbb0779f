/// @file
/// bfloat16_t and float16_t: one element of the two dtypes of two bytes.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera {

namespace detail {

// A float between the two that x lies between: cut off, with the last bit set where that lost something.
// Rounded to fewer digits, it gives what x itself rounded at once would give.
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

// Both ways without a branch, so that loops of them become vectors. To nearest even; NaN stays NaN.
constexpr float widen_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
constexpr std::uint16_t narrow_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, quiet = bits >> 16 | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}
constexpr float widen_float16(std::uint16_t bits) {
  const std::uint32_t size = bits & 0x7fffU, sign = (bits & 0x8000U) << 16;
  const std::uint32_t normal = (size << 13) + (112U << 23), special = size << 13 | 0x7f800000U;
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(size)) * 0x1p-24F);
  return std::bit_cast<float>((size < 0x400U ? subnormal : size < 0x7c00U ? normal : special) | sign);
}
constexpr std::uint16_t narrow_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t size = bits & 0x7fffffffU, sign = bits >> 16 & 0x8000U;
  const std::uint32_t normal = (size + 0xfffU + (size >> 13 & 1U) - (112U << 23)) >> 13;
  // Next to 0.5 floats are as far apart as float16's subnormal numbers: the addition rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  const std::uint32_t quiet = (size >> 13 & 0x3ffU) | 0x7e00U;
  const std::uint32_t rounded = size < 0x38800000U ? subnormal : size < 0x477ff000U ? normal : 0x7c00U;
  return static_cast<std::uint16_t>((size > 0x7f800000U ? quiet : rounded) | sign);
}

}  // namespace detail

/// An element of dtype bfloat16: the upper half of a float, 8 significant bits and float's range. Arithmetic
/// happens in float; numbers are rounded to nearest even, once, and NaN stays NaN.
class bfloat16_t {
 public:
  bfloat16_t() = default;
  /// The nearest to x; infinity beyond the largest.
  template <class N>
  requires std::is_arithmetic_v<N>
  constexpr explicit bfloat16_t(N x) : bits_(detail::narrow_bfloat16(detail::odd_float_of(x))) {}
  constexpr operator float() const { return detail::widen_bfloat16(bits_); }  ///< exact
  constexpr std::uint16_t bits() const { return bits_; }                      ///< as it is stored
  /// The element that is stored so.
  static constexpr bfloat16_t from_bits(std::uint16_t bits) {
    bfloat16_t x{};
    x.bits_ = bits;
    return x;
  }

 private:
  std::uint16_t bits_;
};

/// An element of dtype float16: IEEE 754's binary16, 11 significant bits, at most 65504. Arithmetic happens
/// in float; numbers are rounded to nearest even, once, and NaN stays NaN.
class float16_t {
 public:
  float16_t() = default;
  /// The nearest to x; infinity beyond the largest.
  template <class N>
  requires std::is_arithmetic_v<N>
  constexpr explicit float16_t(N x) : bits_(detail::narrow_float16(detail::odd_float_of(x))) {}
  constexpr operator float() const { return detail::widen_float16(bits_); }  ///< exact
  constexpr std::uint16_t bits() const { return bits_; }                     ///< as it is stored
  /// The element that is stored so.
  static constexpr float16_t from_bits(std::uint16_t bits) {
    float16_t x{};
    x.bits_ = bits;
    return x;
  }

 private:
  std::uint16_t bits_;
};

namespace detail {

// numeric_limits of a type of 16 bits, `precision` of them significant.
template <class T, int precision> struct HalfLimits : std::numeric_limits<float> {
  static constexpr int digits = precision, digits10 = (precision - 1) * 301 / 1000;
  static constexpr int max_digits10 = precision == 8 ? 4 : 5;
  static constexpr int max_exponent = precision == 8 ? 128 : 16, min_exponent = 3 - max_exponent;
  static constexpr int max_exponent10 = precision == 8 ? 38 : 4, min_exponent10 = precision == 8 ? -37 : -4;
  static constexpr T from(int bits) { return T::from_bits(static_cast<std::uint16_t>(bits)); }
  static constexpr int one_exponent = 1 << (precision - 1), infinite = 0x7fff & -one_exponent;
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

}  // namespace detail
}  // namespace tessera

/// Limits of bfloat16.
template <> class std::numeric_limits<tessera::bfloat16_t>
    : public tessera::detail::HalfLimits<tessera::bfloat16_t, 8> {};
/// Limits of float16.
template <> class std::numeric_limits<tessera::float16_t>
    : public tessera::detail::HalfLimits<tessera::float16_t, 11> {};
