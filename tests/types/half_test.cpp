// bfloat16_t and float16_t: the numbers that bits represent, and rounding.
#include <tessera/half.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace tessera::test {
namespace {

template <class T> class Half : public testing::Test {};
using Halves = testing::Types<bfloat16_t, float16_t>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, every_pattern_of_bits_comes_back_from_float) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto x = TypeParam::from_bits(static_cast<std::uint16_t>(bits));
    const float wide = x;
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(float{TypeParam(wide)})) << bits;
    else
      EXPECT_EQ(TypeParam(wide).bits(), bits);
  }
}

// Between two neighbours the midpoint rounds to the even one, other values to the nearer one.
TYPED_TEST(Half, numbers_go_to_the_nearest_and_ties_to_the_even_one) {
  const auto finite = std::numeric_limits<TypeParam>::max().bits();
  for (std::uint16_t bits = 0; bits < finite; bits = static_cast<std::uint16_t>(bits + 1)) {
    const auto lower = TypeParam::from_bits(bits), upper = TypeParam::from_bits(bits + 1);
    const double middle = (double{lower} + double{upper}) / 2;
    const auto even = bits % 2 == 0 ? lower : upper;
    ASSERT_EQ(TypeParam(middle).bits(), even.bits()) << middle;
    ASSERT_EQ(TypeParam(-middle).bits(), even.bits() | 0x8000) << middle;
    // A float cannot represent these two: rounding twice gives a wrong result.
    ASSERT_EQ(TypeParam(std::nextafter(middle, 0.0)).bits(), lower.bits()) << middle;
    ASSERT_EQ(TypeParam(std::nextafter(middle, INFINITY)).bits(), upper.bits()) << middle;
  }
}

TYPED_TEST(Half, what_is_too_large_is_infinite) {
  using Limits = std::numeric_limits<TypeParam>;
  EXPECT_EQ(TypeParam(1e300).bits(), Limits::infinity().bits());
  EXPECT_EQ(TypeParam(-std::numeric_limits<float>::infinity()).bits(), Limits::infinity().bits() | 0x8000);
  EXPECT_EQ(TypeParam(float{Limits::max()}).bits(), Limits::max().bits());
  EXPECT_EQ(float{Limits::lowest()}, -float{Limits::max()});
  EXPECT_TRUE(std::isnan(float{Limits::quiet_NaN()}) && std::isnan(float{TypeParam(NAN)}));
  EXPECT_EQ(TypeParam(1e-300).bits(), 0);
  EXPECT_EQ(TypeParam(-1e-300).bits(), 0x8000);
}

TYPED_TEST(Half, integers_are_rounded_once) {
  constexpr int digits = std::numeric_limits<TypeParam>::digits;
  EXPECT_EQ(float{TypeParam(-3)}, -3.0F);
  EXPECT_EQ(float{TypeParam((1 << digits) + 1)}, std::ldexp(1.0F, digits));
  EXPECT_EQ(float{TypeParam(true)}, 1.0F);
  if (digits == 8) {
    // Beyond the precision of float and double: a tie except for the last bit.
    const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
    EXPECT_EQ(float{TypeParam(tie)}, std::ldexp(1.0F, 62));
    EXPECT_EQ(float{TypeParam(tie + 1)}, std::ldexp(129.0F, 55));
    EXPECT_EQ(float{TypeParam(std::numeric_limits<std::int64_t>::min())}, std::ldexp(-1.0F, 63));
    EXPECT_EQ(float{TypeParam(std::numeric_limits<std::uint64_t>::max())}, std::ldexp(1.0F, 64));
  }
}

TEST(HalfLimits, are_those_of_the_formats) {
  using B = std::numeric_limits<bfloat16_t>;
  using F = std::numeric_limits<float16_t>;
  EXPECT_EQ(float{F::max()}, 65504.0F);
  EXPECT_EQ(float{F::min()}, 0x1p-14F);
  EXPECT_EQ(float{F::denorm_min()}, 0x1p-24F);
  EXPECT_EQ(float{F::epsilon()}, 0x1p-10F);
  EXPECT_EQ(float{B::max()}, 0x1.fep127F);
  EXPECT_EQ(float{B::min()}, std::numeric_limits<float>::min());
  EXPECT_EQ(float{B::epsilon()}, 0x1p-7F);
  static_assert(float16_t(1.5) < float16_t(2) && bfloat16_t(0.1F) == bfloat16_t(0.1));
}

}  // namespace
}  // namespace tessera::test
