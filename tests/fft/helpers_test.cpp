// Frequencies, shifts, convolutions, and what is refused.
#include <gmock/gmock.h>

#include "fft/reference.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Frequencies, AreNumpys) {
  EXPECT_THAT(to_vector<double>(fft::fftfreq(5, 0.5, float64)), ElementsAre(0, 0.4, 0.8, -0.8, -0.4));
  EXPECT_THAT(to_vector<double>(fft::fftfreq(4, 1, float64)), ElementsAre(0, 0.25, -0.5, -0.25));
  EXPECT_THAT(to_vector<double>(fft::rfftfreq(6, 0.5, float64)),
              ElementsAre(0, testing::DoubleEq(1 / 3.0), testing::DoubleEq(2 / 3.0), 1));
  EXPECT_EQ(fft::fftfreq(7).dtype(), float32);
}

TEST(Shifts, MoveZeroToTheMiddleAndBack) {
  EXPECT_THAT(to_vector<int>(fft::fftshift(arange(5))), ElementsAre(3, 4, 0, 1, 2));
  EXPECT_THAT(to_vector<int>(fft::ifftshift(arange(5))), ElementsAre(2, 3, 4, 0, 1));
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Array x = device_put(reshape(arange(42), {7, 6}), mesh, P("x"));
  const Array y = fft::ifftshift(fft::fftshift(x));
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(to_vector<int>(y), to_vector<int>(x));
  EXPECT_EQ(to_vector<int>(fft::fftshift(x, 1))[0], 3);
}

TEST(Convolutions, ValidSlidesTheSmallerOperandWhicheverItIs) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Array three = array({1.0, 2.0, 4.0}),
              seven = device_put(array({1.0, 0.0, -1.0, 2.0, 5.0, 3.0, -2.0}), mesh, P("x"));
  const auto near = [](const Array& x, std::vector<double> expected) {
    EXPECT_THAT(to_vector<double>(x), testing::Pointwise(testing::DoubleNear(1e-12), expected));
  };
  near(fft::convolve(seven, three, "valid"), {3, 0, 5, 21, 24});
  near(fft::convolve(three, seven, "valid"), {3, 0, 5, 21, 24});  // scipy.signal.convolve
  near(fft::correlate(seven, three, "valid"), {-3, 6, 23, 24, 3});
  near(fft::correlate(three, seven, "valid"), {3, 24, 23, 6, -3});  // scipy.signal.correlate
  const Array i = array({std::complex<double>(0, 1), std::complex<double>(2, 0)});
  const auto turned = to_vector<std::complex<double>>(fft::correlate(i, array({1.0, 2.0, 4.0}), "valid"));
  ASSERT_EQ(turned.size(), 2U);  // conj and turned: [4 * 2 + 2i, 2 * 2 + i]
  EXPECT_NEAR(std::abs(turned[0] - std::complex<double>(8, 2)), 0, 1e-12);
  EXPECT_NEAR(std::abs(turned[1] - std::complex<double>(4, 1)), 0, 1e-12);
  EXPECT_THROW(fft::convolve(ones({2, 5}), ones({3, 4}), "valid"), ShapeError);
}

TEST(Convolutions, AreTheSums) {
  Random random(31);
  for (int round = 0; round < 12; ++round) {
    const bool is_complex = round % 2 != 0;
    const Shape n{3 + random.below(9), 2 + random.below(7)}, m{1 + random.below(3), 1 + random.below(2)},
        full{n[0] + m[0] - 1, n[1] + m[1] - 1};
    const Values a = random.values(n, is_complex), b = random.values(m, is_complex);
    Values expected(full.elements());
    for (std::int64_t i = 0; i < n[0]; ++i)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t k = 0; k < m[0]; ++k)
          for (std::int64_t l = 0; l < m[1]; ++l)
            expected[(i + k) * full[1] + j + l] += a[i * n[1] + j] * b[k * m[1] + l];
    const auto sharding = random.sharding(2);
    const auto make = [&](const Values& v, const Shape& s) {
      return is_complex ? complex_array(v, s, complex128) : real_array(v, s, float64);
    };
    const Array x = device_put(make(a, n), sharding), y = make(b, m);
    const Array result = fft::convolve(x, y);
    EXPECT_EQ(result.dtype(), is_complex ? complex128 : float64);
    expect_close(result, expected, full, 1e-13, "full");
    const Array valid = fft::convolve(x, y, "valid");
    EXPECT_EQ(valid.shape(), Shape({n[0] - m[0] + 1, n[1] - m[1] + 1}));
    EXPECT_EQ(fft::convolve(x, y, "same").shape(), n);
    const auto flipped = flip(y);
    expect_close(fft::correlate(x, is_complex ? conj(flipped) : flipped), expected, full, 1e-13, "correlate");
    if (testing::Test::HasFailure()) break;
  }
}

TEST(Refusals, NameTheCallAndTheFacts) {
  const Array x = ones({4, 6}), z = astype(x, complex64);
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::fft(x, {.norm = "unitary"}); }),
              HasSubstr("no norm \"unitary\"; it is backward, ortho or forward"));
  EXPECT_THAT(error_of<IndexError>([&] { fft::fft(x, {.axes = {2}}); }), HasSubstr("axis 2 is out of range"));
  EXPECT_THAT(error_of<IndexError>([&] { fft::fftn(x, {.axes = {0, -2}}); }), HasSubstr("twice"));
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::fft(x, 0); }), HasSubstr("0 points along axis 1"));
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::irfft(ones({3, 1})); }), HasSubstr("pass n"));
  EXPECT_THAT(error_of<DtypeError>([&] { fft::rfftn(z); }), HasSubstr("Use fftn, or take real(x)"));
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::fft2(x, {.axes = {0}}); }),
              HasSubstr("it transforms 2 axes, but options.axes names 1"));
  EXPECT_THAT(error_of<ArgumentError>([&] {
                fft::fftn(x, {.s = {4, 4, 4}});
              }),
              HasSubstr("3 axes of an array of 2 dimensions"));
  EXPECT_THAT(error_of<ArgumentError>([&] {
                fft::fftn(x, {.axes = {0}, .s = {4, 4}});
              }),
              HasSubstr("2 lengths for 1 axis"));
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::fft(x, {.out_sharding = fft::given}); }),
              HasSubstr("options.given holds no sharding"));
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::convolve(x, x, "some"); }),
              HasSubstr("full, same or valid"));
}

TEST(Dtypes, IntegersAndFloatsGiveTheComplexOfTheirPrecision) {
  EXPECT_EQ(fft::fft(arange(4)).dtype(), complex64);
  EXPECT_EQ(fft::fft(ones({4}, float64)).dtype(), complex128);
  EXPECT_EQ(fft::rfft(astype(arange(4), bool_)).dtype(), complex64);
  EXPECT_EQ(fft::irfft(ones({4}, float64)).dtype(), float64);
  EXPECT_EQ(fft::hfft(ones({4})).dtype(), float32);
}

}  // namespace
}  // namespace tessera::test
