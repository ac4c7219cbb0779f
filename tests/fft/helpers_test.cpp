// Shifts of split arrays, dtypes and rejected arguments. Values are tested in tests/catalogue.
#include <gmock/gmock.h>

#include "fft/reference.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

TEST(Shifts, move_zero_to_the_middle_and_back) {
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  const Array x = device_put(reshape(arange(42), {7, 6}), mesh, P("x"));
  const Array y = fft::ifftshift(fft::fftshift(x));
  EXPECT_EQ(y.sharding(), x.sharding());
  EXPECT_EQ(to_vector<int>(y), to_vector<int>(x));
}

TEST(Refusals, name_the_call_and_the_facts) {
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
  EXPECT_THROW(fft::convolve(ones({2, 5}), ones({3, 4}), "valid"), ShapeError);
  EXPECT_THAT(error_of<ArgumentError>([&] { fft::convolve(x, x, "some"); }),
              HasSubstr("full, same or valid"));
}

TEST(Dtypes, integers_and_floats_give_the_complex_of_their_precision) {
  EXPECT_EQ(fft::fftfreq(7).dtype(), float32);
  EXPECT_EQ(fft::fft(arange(4)).dtype(), complex64);
  EXPECT_EQ(fft::fft(ones({4}, float64)).dtype(), complex128);
  EXPECT_EQ(fft::rfft(astype(arange(4), bool_)).dtype(), complex64);
  EXPECT_EQ(fft::irfft(ones({4}, float64)).dtype(), float64);
  EXPECT_EQ(fft::hfft(ones({4})).dtype(), float32);
}

}  // namespace
}  // namespace tessera::test
