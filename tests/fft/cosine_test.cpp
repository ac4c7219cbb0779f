// Cosine and sine transforms against scipy.fft's sums, on every layout of small meshes.
#include <tessera/fft.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

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

// The definitions, term by term.
std::vector<double> sums(const std::vector<double>& x, bool cosine, int type) {
  const auto n = static_cast<double>(x.size());
  std::vector<double> result;
  for (std::size_t at = 0; at < x.size(); ++at) {
    const auto k = static_cast<double>(at);
    double sum = 0;
    for (std::size_t place = 0; place < x.size(); ++place) {
      const auto j = static_cast<double>(place);
      const double pi = std::numbers::pi;
      double angle = 0, weight = 2;
      if (cosine) {
        if (type == 1) angle = pi * j * k / (n - 1), weight = j == 0 || j == n - 1 ? 1 : 2;
        if (type == 2) angle = pi * (2 * j + 1) * k / (2 * n);
        if (type == 3) angle = pi * j * (2 * k + 1) / (2 * n), weight = j == 0 ? 1 : 2;
        if (type == 4) angle = pi * (2 * j + 1) * (2 * k + 1) / (4 * n);
      } else {
        if (type == 1) angle = pi * (j + 1) * (k + 1) / (n + 1);
        if (type == 2) angle = pi * (2 * j + 1) * (k + 1) / (2 * n);
        if (type == 3) angle = pi * (j + 1) * (2 * k + 1) / (2 * n), weight = j == n - 1 ? 1 : 2;
        if (type == 4) angle = pi * (2 * j + 1) * (2 * k + 1) / (4 * n);
      }
      sum += weight * x[place] * (cosine ? std::cos(angle) : std::sin(angle));
    }
    result.push_back(sum);
  }
  return result;
}

void expect_near(const Array& a, const std::vector<double>& b, double tolerance = 1e-12) {
  const auto x = to_vector<double>(a);
  ASSERT_EQ(x.size(), b.size());
  for (std::size_t i = 0; i < b.size(); ++i)
    EXPECT_NEAR(x[i], b[i], tolerance * static_cast<double>(b.size() + 10)) << i;
}

TEST(Cosine, TypesAreTheirSumsOnEveryLayout) {
  for (const std::int64_t n : {2, 5, 8})
    for (const int type : {1, 2, 3, 4}) {
      const auto x = samples(n);
      for (const Array& placed : {array(x), device_put(array(x), line(), P("x"))}) {
        expect_near(fft::dct(placed, {.type = type}), sums(x, true, type));
        expect_near(fft::dst(placed, {.type = type}), sums(x, false, type));
      }
    }
}

TEST(Cosine, ASplitAxisIsTransposedAndComesBackWhereItWas) {
  const Array x = device_put(reshape(array(samples(7 * 6)), {7, 6}), line(), P("x"));
  const Array y = fft::dct(x, {.axis = 0});
  EXPECT_EQ(y.sharding(), x.sharding());
  for (int column = 0; column < 6; ++column)
    expect_near(y(slice(), column), sums(to_vector<double>(x(slice(), column)), true, 2));
}

TEST(Cosine, InversesGiveBackInEveryNorm) {
  const auto x = samples(9);
  for (const char* norm : {"backward", "ortho", "forward"})
    for (const int type : {1, 2, 3, 4}) {
      const CosineOptions o{.type = type, .norm = norm};
      expect_near(fft::idct(fft::dct(array(x), o), o), x);
      expect_near(fft::idst(fft::dst(array(x), o), o), x);
    }
}

TEST(Cosine, OrthonormalTransformsKeepLengths) {
  const auto x = samples(6);
  const double length = item<double>(sum(square(array(x))));
  for (const int type : {1, 2, 3, 4}) {
    const CosineOptions o{.type = type, .norm = "ortho"};
    EXPECT_NEAR(item<double>(sum(square(fft::dct(array(x), o)))), length, 1e-12);
    EXPECT_NEAR(item<double>(sum(square(fft::dst(array(x), o)))), length, 1e-12);
  }
}

TEST(Cosine, SeveralAxesOneAfterTheOther) {
  const Array x = device_put(reshape(array(samples(20)), {4, 5}), line(), P(None, "x"));
  const Array expected = fft::dct(fft::dct(x, {.axis = 0}), {.axis = 1});
  expect_near(reshape(fft::dctn(x), {-1}), to_vector<double>(expected));
  expect_near(reshape(fft::idctn(fft::dctn(x)), {-1}), to_vector<double>(x));
}

TEST(Cosine, GradientsAreTheTransposedTransform) {
  const auto x = samples(5), c = samples(5);
  const auto f = [&](const Array& v) { return sum(array(c) * fft::dct(v)); };
  // The transpose of type 2 is type 3 with its first term doubled.
  std::vector<double> doubled = c;
  doubled[0] *= 2;
  expect_near(grad(f)(array(x)), sums(doubled, true, 3));
}

TEST(Cosine, IntegersBecomeFloat32) {
  EXPECT_EQ(fft::dct(arange(4)).dtype(), float32);
  EXPECT_EQ(fft::dct(astype(array(samples(4)), float32)).dtype(), float32);
}

TEST(Cosine, ErrorsSayWhatThereIs) {
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
