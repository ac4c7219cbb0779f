// Dtypes and values of elementwise ops in nonobvious cases. The values are NumPy's.
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Complex = std::complex<float>;

TEST(Elementwise, a_mask_plus_a_number_adapts_to_the_integers_it_meets) {
  const Array mask = array({true, false, true});
  const Array counted = mask + 1;
  EXPECT_EQ(counted.dtype(), int32);
  EXPECT_TRUE(counted.is_weakly_typed());
  const Array sum = counted + astype(array({10, 20, 30}), int8);
  EXPECT_EQ(sum.dtype(), int8);
  EXPECT_THAT(to_vector<int>(sum), ElementsAre(12, 21, 32));
  EXPECT_TRUE(where(mask, 1, 2).is_weakly_typed());
  EXPECT_EQ((where(mask, 1, 2) + astype(mask, uint16)).dtype(), uint16);
}

TEST(Elementwise, plain_numbers_beyond_int32_do_not_wrap_around_among_themselves) {
  constexpr std::int64_t beyond = std::int64_t{1} << 40;
  const Array mask = array({true, false});
  const Array chosen = where(mask, beyond, 0);
  EXPECT_EQ(chosen.dtype(), int64);
  EXPECT_THAT(to_vector<std::int64_t>(chosen), ElementsAre(beyond, 0));
  EXPECT_THAT(to_vector<std::int64_t>(array({1, 2}) + chosen), ElementsAre(beyond + 1, 2));
  EXPECT_FALSE(item<bool>(equal(std::int64_t{1} << 32, 0)));
  const auto below = jit([](const Array& n) { return where(n < std::int64_t{1} << 40, 1, 0); });
  EXPECT_EQ(item<int>(below(Array(3))), 1);
  EXPECT_THROW(array({1, 2}) + beyond, ArgumentError);
}

TEST(Elementwise, comparisons_with_plain_numbers_beyond_a_dtype_are_those_of_numbers) {
  const Array x = astype(array({0, 5, 255}), uint8);
  EXPECT_TRUE(item<bool>(all(x < 300)));
  EXPECT_TRUE(item<bool>(all(-1 < x)));
  EXPECT_FALSE(item<bool>(any(300 <= x)));
  EXPECT_FALSE(item<bool>(any(x == 256)));
  EXPECT_TRUE(item<bool>(all(x != -1)));
  EXPECT_TRUE(item<bool>(all(array({1, 2}) < std::int64_t{1} << 40)));
  // C++ has unsigned literals: every bit pattern is a value of uint64.
  EXPECT_TRUE(item<bool>(all(full({2}, 7, uint64) < ~std::uint64_t{0})));
  EXPECT_THROW(x + 300, ArgumentError);
}

TEST(Elementwise, rounds_both_parts_of_a_complex_number) {
  EXPECT_THAT(to_vector<Complex>(round(array({Complex(1.5f, -2.5f), Complex(-0.4f, 0.6f)}))),
              ElementsAre(Complex(2, -2), Complex(0, 1)));
}

TEST(Elementwise, logarithms_and_powers_of_other_bases_take_complex_numbers) {
  const Array z = array({std::complex<double>(0, 8), std::complex<double>(-100, 0)});
  const auto log2_z = to_vector<std::complex<double>>(log2(z)),
             log10_z = to_vector<std::complex<double>>(log10(z));
  EXPECT_NEAR(log2_z[0].real(), 3, 1e-14);
  EXPECT_NEAR(log2_z[0].imag(), 2.26618007091359690, 1e-14);
  EXPECT_NEAR(log10_z[1].real(), 2, 1e-14);
  EXPECT_NEAR(log10_z[1].imag(), 1.36437635384184135, 1e-14);
  const auto back = to_vector<std::complex<double>>(exp2(log2(z)));
  EXPECT_NEAR(std::abs(back[0] - std::complex<double>(0, 8)), 0, 1e-13);
}

TEST(Elementwise, the_power_by_2_keeps_dtypes_and_takes_one_operand_if_it_can) {
  const Array x = array({-3.F, -0.F, 1e30F}), n = array({-3, 0, 65536});
  EXPECT_THAT(to_vector<float>(power(x, 2)), ElementsAre(9.F, 0.F, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(to_vector<int>(power(n, 2)), ElementsAre(9, 0, 0));  // wraps around
  EXPECT_EQ(power(x, 2.0).dtype(), float32);
  EXPECT_EQ(power(n, 2.0).dtype(), float32);
  EXPECT_EQ(power(n, 2).dtype(), int32);
  EXPECT_EQ(power(x, array(std::vector<double>{2})).dtype(), float64);
  EXPECT_EQ(power(array({true}), 2).dtype(), int32);
  EXPECT_THAT(to_vector<float>(grad([](const Array& v) { return sum(power(v, 2)); })(x)),
              ElementsAre(-6.F, -0.F, 2e30F));
  const auto text = [](auto f, const Array& v) { return jit(f).lower(v).as_text(); };
  EXPECT_THAT(text([](const Array& v) { return power(v, 2); }, x), HasSubstr("square"));
  EXPECT_THAT(text([](const Array& v) { return power(v, 3); }, x), HasSubstr("power"));
}

TEST(Elementwise, the_absolute_value_of_bool_is_itself) {
  EXPECT_EQ(abs(array({true, false})).dtype(), bool_);
}

// Refused when it is recorded, not when it runs.
TEST(Elementwise, what_a_dtype_cannot_do_is_refused_at_the_call) {
  const Array z = array({Complex(1, 2)}), mask = array({true});
  const auto refusal = [](auto f) -> std::string {
    try {
      f();
    } catch (const DtypeError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal([&] { z % z; }), HasSubstr("remainder at elementwise_test.cpp"));
  EXPECT_THAT(refusal([&] { floor_divide(z, 2); }),
              HasSubstr("takes numbers that have an order, not complex64"));
  EXPECT_THAT(refusal([&] { relu(z); }), HasSubstr("complex64"));
  EXPECT_THAT(refusal([&] { bitwise_left_shift(mask, mask); }), HasSubstr("takes integers, not bool"));
  EXPECT_THAT(refusal([&] { bitwise_right_shift(mask, 1.5); }), HasSubstr("takes integers"));
  EXPECT_THAT(refusal([&] { mask - mask; }), HasSubstr("bool - bool is ambiguous; a ^ b"));
  EXPECT_THAT(refusal([&] { negative(mask); }), HasSubstr("a bool has no negative"));
  EXPECT_EQ((mask - 1).dtype(), int32);
  EXPECT_THROW(power(array({1, 2}), -1), ArgumentError);
  EXPECT_EQ(bitwise_left_shift(mask, 3).dtype(), int32);
}

}  // namespace
}  // namespace tessera::test
