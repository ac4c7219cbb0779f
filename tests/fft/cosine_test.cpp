// Cosine and sine transforms: layouts, inverses, dtypes and refusals. Values are tested in tests/catalogue.
#include <tessera/fft.hpp>
#include <tessera/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/compare.hpp"
#include "support/errors.hpp"

namespace tessera::test {
namespace {

using fft::CosineOptions;
using testing::HasSubstr;

Mesh line() { return make_mesh({device_count()}, {"x"}); }
std::vector<double> samples(std::int64_t n) {
  std::vector<double> x;
  for (std::int64_t j = 0; j < n; ++j)
    x.push_back(std::sin(1.3 * static_cast<double>(j)) + 0.2 * static_cast<double>(j % 3));
  return x;
}

TEST(Cosine, a_split_axis_is_transposed_and_comes_back_where_it_was) {
  const Array x = device_put(reshape(array(samples(7 * 6)), {7, 6}), line(), P("x"));
  const Array y = fft::dct(x, {.axis = 0});
  EXPECT_EQ(y.sharding(), x.sharding());
  for (int column = 0; column < 6; ++column)
    expect_close(y(slice(), column), fft::dct(x(slice(), column)), 1e-12);
}

TEST(Cosine, inverses_give_back_in_every_norm) {
  const Array x = array(samples(9));
  for (const char* norm : {"backward", "ortho", "forward"})
    for (const int type : {1, 2, 3, 4}) {
      const CosineOptions o{.type = type, .norm = norm};
      expect_close(fft::idct(fft::dct(x, o), o), x, 1e-12);
      expect_close(fft::idst(fft::dst(x, o), o), x, 1e-12);
    }
}

TEST(Cosine, integers_become_float_32) {
  EXPECT_EQ(fft::dct(arange(4)).dtype(), float32);
  EXPECT_EQ(fft::dct(astype(array(samples(4)), float32)).dtype(), float32);
}

TEST(Cosine, errors_say_what_there_is) {
  const Array x = array(samples(4));
  EXPECT_THAT(error_of<ArgumentError>([&] { (void)fft::dct(x, {.type = 5}); }),
              HasSubstr("there are 1, 2, 3, 4"));
  EXPECT_THAT(error_of<ArgumentError>([&] { (void)fft::dst(x, {.norm = "both"}); }),
              HasSubstr("'backward', 'ortho'"));
  EXPECT_THAT(error_of<DtypeError>([&] { (void)fft::dct(astype(x, complex128)); }), HasSubstr("complex128"));
  EXPECT_THAT(error_of<ShapeError>([&] { (void)fft::dct(ones({1}), {.type = 1}); }),
              HasSubstr("two or more"));
  EXPECT_THAT(error_of<IndexError>([&] { (void)fft::dct(x, {.axis = 3}); }), HasSubstr("3"));
}

}  // namespace
}  // namespace tessera::test
