#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::Stored;

// The documented rule, one element at a time.
template <class To, class From> To converted(From x) {
  if constexpr (testing::is_complex_type<From>) {
    if constexpr (testing::is_complex_type<To>)
      return To(static_cast<typename To::value_type>(x.real()),
                static_cast<typename To::value_type>(x.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return x.real() != 0 || x.imag() != 0;
    else
      return converted<To>(x.real());
  } else if constexpr (testing::is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    const long double whole = std::trunc(static_cast<long double>(x));
    if (whole <= static_cast<long double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (whole >= static_cast<long double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(x);
  }
}

TEST(cast, every_pair_of_dtypes_follows_the_rule) {
  for (const Dtype from : testing::all_dtypes())
    for (const Dtype to : testing::all_dtypes())
      visit(from, [&]<class From>(From) {
        visit(to, [&]<class To>(To) {
          auto values = testing::edges<From>();
          for (const From x : testing::random_values<From>(333)) values.push_back(x);
          if constexpr (std::is_floating_point_v<From>)  // around the ends of the integers
            for (const double end : {128.0, 255.0, 256.0, 32768.0, 65536.0, 0x1p31, 0x1p32, 0x1p63, 0x1p64})
              for (const double x : {end - 1, end, end + 1, -end - 1, -end, -end + 0.5})
                values.push_back(static_cast<From>(x));
          const auto in = testing::stored(values);
          std::vector<Stored<To>> out(in.size());
          const void* operands[] = {in.data()};
          ASSERT_NE(find_cast(from, to), nullptr);
          find_cast(from, to)(operands, out.data(), static_cast<std::int64_t>(in.size()));
          for (std::size_t i = 0; i < in.size(); ++i)
            ASSERT_TRUE(testing::same<To>(out[i], converted<To>(static_cast<From>(in[i]))))
                << name(from) << " to " << name(to) << ", element " << i;
        });
      });
}

template <class Half, class Other> void expect_half_casts() {
  const Dtype half = dtype_of<Half>(), other = dtype_of<Other>();
  std::vector<std::uint16_t> bits;
  for (int b = 0; b < 0x10000; b += 7) bits.push_back(static_cast<std::uint16_t>(b));
  const auto n = static_cast<std::int64_t>(bits.size());
  std::vector<float> wide;
  for (const auto b : bits) wide.push_back(Half::from_bits(b));
  std::vector<Stored<Other>> direct(bits.size()), by_float(bits.size());
  const void *halves[] = {bits.data()}, *floats[] = {wide.data()}, *others[] = {direct.data()};
  find_cast(half, other)(halves, direct.data(), n);
  find_cast(float32, other)(floats, by_float.data(), n);
  EXPECT_EQ(std::memcmp(direct.data(), by_float.data(), direct.size() * sizeof(direct[0])), 0)
      << name(half) << " to " << name(other);
  std::vector<std::uint16_t> back(bits.size());
  find_cast(other, half)(others, back.data(), n);
  for (std::size_t i = 0; i < back.size(); ++i) {
    const float got = Half::from_bits(back[i]);
    float expected = 0;
    if constexpr (testing::is_complex_type<Other>)
      expected = Half(direct[i].real());
    else
      expected = Half(direct[i]);
    ASSERT_TRUE(testing::same(got, expected)) << name(other) << " to " << name(half) << ", element " << i;
  }
}
TEST(cast, halves_go_by_float_and_are_rounded_once) {
  for (const Dtype other : testing::all_dtypes())
    visit(other, []<class Other>(Other) {
      expect_half_casts<bfloat16_t, Other>();
      expect_half_casts<float16_t, Other>();
    });
}

TEST(cast, floats_become_float16_with_the_very_bits_of_one_conversion) {
  std::vector<float> wide;
  for (std::uint64_t b = 0; b < std::uint64_t{1} << 32; b += 0xfff)  // ties and their neighbours among them
    wide.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  std::vector<std::uint16_t> narrow(wide.size());
  const void* operands[] = {wide.data()};
  find_cast(float32, float16)(operands, narrow.data(), static_cast<std::int64_t>(wide.size()));
  for (std::size_t i = 0; i < wide.size(); ++i)
    ASSERT_EQ(narrow[i], float16_t(wide[i]).bits()) << std::bit_cast<std::uint32_t>(wide[i]);
}

TEST(cast, no_element_past_the_end_is_written) {
  for (const Dtype from : testing::with_halves())
    for (const Dtype to : testing::with_halves())
      for (const std::int64_t n : testing::odd_sizes) {
        const std::vector<std::byte> in(static_cast<std::size_t>(n) * itemsize(from) + 16);
        std::vector<std::byte> out(static_cast<std::size_t>(n) * itemsize(to) + 32, std::byte{0x5A});
        const void* operands[] = {in.data()};
        find_cast(from, to)(operands, out.data(), n);
        for (std::size_t i = static_cast<std::size_t>(n) * itemsize(to); i < out.size(); ++i)
          ASSERT_EQ(out[i], std::byte{0x5A}) << name(from) << " to " << name(to) << " n=" << n;
      }
}

}  // namespace
}  // namespace tessera::kernels
