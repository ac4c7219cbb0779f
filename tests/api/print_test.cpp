// Arrays as text in NumPy's format.
#include <gtest/gtest.h>
#include <tessera/ops.hpp>

#include <cmath>
#include <complex>

namespace tessera {
namespace {

TEST(Print, numbers_show_the_digits_they_need) {
  EXPECT_EQ(to_string(array({0.48870957f, 1.6797972f, 10.f})), "[ 0.48870957  1.6797972  10.        ]");
  EXPECT_EQ(to_string(array({1.f, 2.f})), "[1. 2.]");
  EXPECT_EQ(to_string(array({1e-10f, 1.f})), "[1.e-10 1.e+00]");
}

// The expected texts are NumPy 1.24's for the same values.
TEST(Print, digits_behind_the_eighth_are_cut_with_their_zeros) {
  EXPECT_EQ(to_string(array({0.00816024f, 0.01408451f, 0.0194369964f})),
            "[0.00816024 0.01408451 0.019437  ]");
  EXPECT_EQ(to_string(array({1.0 / 3, 2.0 / 3, 1.0, 0.1234000000001})),
            "[0.33333333 0.66666667 1.         0.1234    ]");
  EXPECT_EQ(to_string(array({1e-9 / 3, 1.})), "[3.33333333e-10 1.00000000e+00]");
}

TEST(Print, a_range_beyond_a_thousand_is_scientific) {
  EXPECT_EQ(to_string(array({0.5, 1000.})), "[5.e-01 1.e+03]");
  EXPECT_EQ(to_string(array({1., 1000.})), "[   1. 1000.]");
  EXPECT_EQ(to_string(array({std::nan(""), 1., 2.25})), "[ nan 1.   2.25]");
}

TEST(Print, long_rows_are_broken_without_spaces_at_the_ends) {
  const Array x =
      array({-396.55075f, 188.79953f, -21.223461f, 609.2165f, -364.90875f, -152.3619f, 242.38142f});
  EXPECT_EQ(to_string(x),
            "[-396.55075   188.79953   -21.223461  609.2165   -364.90875  -152.3619\n"
            "  242.38142 ]");
  const Array wide = array({747.25457588, -1030.75802551, 1675.82751011, 748.76451651, -18.34141812,
                            -1189.37450927, 297.78952491});
  EXPECT_EQ(to_string(wide),
            "[  747.25457588 -1030.75802551  1675.82751011   748.76451651\n"
            "   -18.34141812 -1189.37450927   297.78952491]");
}

TEST(Print, integers_and_bools_are_aligned) {
  EXPECT_EQ(to_string(reshape(arange(12), {3, 4})), "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]");
  EXPECT_EQ(to_string(arange(3) > 1), "[False False  True]");
}

TEST(Print, long_dimensions_are_abbreviated) {
  EXPECT_EQ(to_string(arange(2000)), "[   0    1    2 ... 1997 1998 1999]");
}

TEST(Print, a_sharded_array_shows_the_same_text) {
  const Array x = reshape(arange(30), {5, 6});
  EXPECT_EQ(to_string(device_put(x, make_mesh({device_count()}, {"x"}), P(None, "x"))), to_string(x));
}

TEST(Print, scalars_and_complex_numbers) {
  EXPECT_EQ(to_string(Array(2.5)), "2.5");
  EXPECT_EQ(to_string(astype(Array(1.), float64) / 3.), "0.3333333333333333");
  EXPECT_EQ(to_string(astype(Array(1), float32)), "1.0");
  EXPECT_EQ(to_string(reshape(array({1e-7}), {})), "1e-07");
  EXPECT_EQ(to_string(astype(Array(1e8), float32)), "100000000.0");
  EXPECT_EQ(to_string(astype(Array(-99999999), float32)), "-100000000.0");
  EXPECT_EQ(to_string(reshape(array({std::complex<double>(1, -2)}), {})), "(1-2j)");
  EXPECT_EQ(to_string(array({std::complex<double>(1, -2.25), std::complex<double>(-10.5, 3)})),
            "[  1. -2.25j -10.5+3.j  ]");
  EXPECT_EQ(to_string(array({std::complex<float>(1, -2)})), "[1.-2.j]");
}

}  // namespace
}  // namespace tessera
