// Arrays as text, as NumPy shows them.
#include <gtest/gtest.h>
#include <tessera/ops.hpp>

#include <complex>

namespace tessera {
namespace {

TEST(Print, NumbersShowTheDigitsTheyNeed) {
  EXPECT_EQ(to_string(array({0.48870957f, 1.6797972f, 10.f})), "[ 0.48870957  1.6797972  10.        ]");
  EXPECT_EQ(to_string(array({1.f, 2.f})), "[1. 2.]");
  EXPECT_EQ(to_string(array({1e-10f, 1.f})), "[1.e-10 1.e+00]");
}

TEST(Print, IntegersAndBoolsAreAligned) {
  EXPECT_EQ(to_string(reshape(arange(12), {3, 4})), "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]");
  EXPECT_EQ(to_string(arange(3) > 1), "[False False  True]");
}

TEST(Print, LongDimensionsAreAbbreviated) { EXPECT_EQ(to_string(arange(2000)), "[   0    1    2 ... 1997 1998 1999]"); }

TEST(Print, AShardedArrayShowsTheSameText) {
  const Array x = reshape(arange(30), {5, 6});
  EXPECT_EQ(to_string(device_put(x, make_mesh({device_count()}, {"x"}), P(None, "x"))), to_string(x));
}

TEST(Print, ScalarsAndComplexNumbers) {
  EXPECT_EQ(to_string(Array(2.5)), "2.5");
  EXPECT_EQ(to_string(array({std::complex<float>(1, -2)})), "[1.-2.j]");
}

}  // namespace
}  // namespace tessera
