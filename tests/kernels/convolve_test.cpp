// Convolutions of one rank against the sum that defines them, by matrices of patches and by lines.
#include "kernels/dense/convolve.hpp"

#include <gtest/gtest.h>

#include <random>

#include "kernels/dense/convolve_lines.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

std::int64_t product_of(const ConvolveShape& s, std::int64_t ConvolveDim::*extent) {
  std::int64_t n = 1;
  for (const auto& d : s.dims) n *= d.*extent;
  return n;
}

// One element of the result, in double.
template <class T> double expected(const ConvolveShape& s, const std::vector<T>& x, const std::vector<T>& w,
                                   std::int64_t image, std::int64_t group, std::int64_t feature,
                                   std::int64_t position) {
  const auto in = product_of(s, &ConvolveDim::in), taps = product_of(s, &ConvolveDim::taps);
  double sum = 0;
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t t = 0; t < taps; ++t) {
      std::int64_t at = 0, stride = 1, p = position, k = t;
      bool is_inside = true;
      for (std::size_t d = s.dims.size(); d-- > 0;) {
        const auto& dim = s.dims[d];
        const auto i = p % dim.out * dim.stride + k % dim.taps * dim.dilation + dim.first;
        is_inside = is_inside && i >= 0 && i < dim.in;
        at += i * stride, stride *= dim.in, p /= dim.out, k /= dim.taps;
      }
      if (!is_inside) continue;
      const auto weight = ((group * s.features + feature) * s.channels + c) * taps + t;
      sum += double{w[weight]} * double{x[((image * s.groups + group) * s.channels + c) * in + at]};
    }
  return sum;
}

template <class T> void expect_convolution(const ConvolveShape& s) {
  const auto in = product_of(s, &ConvolveDim::in), taps = product_of(s, &ConvolveDim::taps),
             out = product_of(s, &ConvolveDim::out);
  const auto x = testing::random_values<T>(s.images * s.groups * s.channels * in, 1),
             w = testing::random_values<T>(s.groups * s.features * s.channels * taps, 2);
  std::vector<T> y(s.images * s.groups * s.features * out + 8, T(77));
  const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto const_bytes = [](const auto& v) { return reinterpret_cast<const std::byte*>(v.data()); };
  convolve(s, const_bytes(x), const_bytes(w), bytes(y));
  std::int64_t e = 0;
  for (std::int64_t image = 0; image < s.images; ++image)
    for (std::int64_t group = 0; group < s.groups; ++group)
      for (std::int64_t feature = 0; feature < s.features; ++feature)
        for (std::int64_t p = 0; p < out; ++p, ++e) {
          const double wanted = expected(s, x, w, image, group, feature, p);
          ASSERT_NEAR(y[e], wanted, 2e-5 * (1 + std::abs(wanted)))
              << "image " << image << " group " << group << " feature " << feature << " position " << p;
        }
  for (; e < static_cast<std::int64_t>(y.size()); ++e) ASSERT_EQ(y[e], T(77));  // nothing behind the end
}

TEST(convolve, equals_its_definition) {
  std::mt19937 random(5);
  const auto pick = [&](int lo, int hi) {
    return lo + static_cast<std::int64_t>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  int by_lines = 0;
  for (int round = 0; round < 120; ++round) {
    ConvolveShape s{round % 2 ? float32 : float64, pick(1, 2), pick(1, 3), pick(1, 3), pick(1, 2), {}};
    for (std::int64_t d = pick(1, 3); d > 0; --d) {
      ConvolveDim dim{pick(1, 20), 0, pick(1, 5), pick(1, 2), pick(1, 3), 0};
      const auto before = pick(0, 4), after = pick(0, 4), reach = (dim.taps - 1) * dim.dilation + 1;
      dim.first = -before;
      dim.out = std::max<std::int64_t>(0, (dim.in + before + after - reach) / dim.stride + 1);
      if (dim.in + before + after < reach) dim.out = 0;
      s.dims.push_back(dim);
    }
    by_lines += goes_by_lines(s);
    if (s.dtype == float32)
      expect_convolution<float>(s);
    else
      expect_convolution<double>(s);
  }
  EXPECT_GT(by_lines, 15);
  EXPECT_LT(by_lines, 60);
}

TEST(convolve, lines_longer_than_a_piece) {
  for (const std::int64_t in : {4095, 4096, 4097, 20'001})
    for (const std::int64_t first : {-6, -2, 0, 3}) {
      const std::int64_t taps = 5, dilation = 3, out = in - (taps - 1) * dilation - first + 4;
      expect_convolution<float>({float32, 2, 1, 2, 1, {{in, out, taps, 1, dilation, first}}});
    }
}

}  // namespace
}  // namespace tessera::kernels
