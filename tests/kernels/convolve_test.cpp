// Convolutions of one rank compared with their definition, by patch matrices, by lines and by tiles.
#include "kernels/dense/convolve.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/thresholds.hpp"
#include "kernels/dense/convolve_fourier.hpp"
#include "kernels/dense/convolve_lines.hpp"
#include "kernels/dense/convolve_tiles.hpp"
#include "kernels/threads.hpp"
#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

std::int64_t product_of(const ConvolveShape& s, std::int64_t ConvolveDim::*extent) {
  std::int64_t n = 1;
  for (const auto& d : s.dims) n *= d.*extent;
  return n;
}

// One element of the result, computed in double.
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

// x[poisoned] is an infinity, if there is such an element.
template <class T> void expect_convolution(const ConvolveShape& s, std::int64_t poisoned = -1) {
  const auto in = product_of(s, &ConvolveDim::in), taps = product_of(s, &ConvolveDim::taps),
             out = product_of(s, &ConvolveDim::out);
  auto x = testing::random_values<T>(s.images * s.groups * s.channels * in, 1);
  if (poisoned >= 0 && poisoned < static_cast<std::int64_t>(x.size()))
    x[poisoned] = std::numeric_limits<T>::infinity();
  const auto w = testing::random_values<T>(s.groups * s.features * s.channels * taps, 2);
  std::vector<T> y(s.images * s.groups * s.features * out + 8, T(77));
  const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
  const auto const_bytes = [](const auto& v) { return reinterpret_cast<const std::byte*>(v.data()); };
  convolve(s, const_bytes(x), const_bytes(w), bytes(y));
  const double tolerance = s.channels * taps > 256 ? 2e-4 : 2e-5;
  std::int64_t e = 0;
  for (std::int64_t image = 0; image < s.images; ++image)
    for (std::int64_t group = 0; group < s.groups; ++group)
      for (std::int64_t feature = 0; feature < s.features; ++feature)
        for (std::int64_t p = 0; p < out; ++p, ++e) {
          const double wanted = expected(s, x, w, image, group, feature, p);
          if (!std::isfinite(wanted)) {
            ASSERT_FALSE(std::isfinite(y[e])) << image << " " << group << " " << feature << " " << p;
            continue;
          }
          ASSERT_NEAR(y[e], wanted, tolerance * (1 + std::abs(wanted)))
              << "image " << image << " group " << group << " feature " << feature << " position " << p;
        }
  for (; e < static_cast<std::int64_t>(y.size()); ++e) ASSERT_EQ(y[e], T(77));  // unchanged past the end
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

// Signals with windows that begin and end anywhere; taps may be more than elements.
std::vector<ConvolveShape> shapes_of_signals() {
  std::mt19937 random(13);
  const auto pick = [&](int lo, int hi) {
    return lo + static_cast<std::int64_t>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  std::vector<ConvolveShape> shapes;
  while (shapes.size() < 60) {
    ConvolveShape s{float32, pick(1, 2), pick(1, 2), 1, 1, {}};
    ConvolveDim dim{pick(4, shapes.size() % 2 == 0 ? 90 : 900), 0, pick(4, 120), 1, 1, 0};
    const auto before = pick(0, 150), after = pick(0, 150);
    dim.first = -before;
    dim.out = dim.in + before + after - dim.taps + 1;
    if (dim.out < 4) continue;
    s.dims.push_back(dim);
    shapes.push_back(s);
  }
  return shapes;
}

TEST(convolve, by_transforms_equals_its_definition) {
  const LowThresholds low(64);
  std::int64_t poisoned = -1;
  for (const auto& s : shapes_of_signals()) {
    ASSERT_TRUE(goes_by_fourier(s));
    expect_convolution<float>(s);
    expect_convolution<float>(s, poisoned += 7);
  }
}

std::vector<float> convolved(const ConvolveShape& s, const std::vector<float>& x,
                             const std::vector<float>& w) {
  std::vector<float> y(static_cast<std::size_t>(s.images * s.groups * s.dims[0].out), 77.0f);
  convolve(s, reinterpret_cast<const std::byte*>(x.data()), reinterpret_cast<const std::byte*>(w.data()),
           reinterpret_cast<std::byte*>(y.data()));
  return y;
}

// A transform's error is relative to the largest elements; each element of the result must be as precise as a
// sum of its own terms.
TEST(convolve, by_transforms_keeps_small_elements_beside_large_ones) {
  for (const std::int64_t in : {3000, 60000}) {
    const ConvolveShape s{float32, 1, 1, 1, 1, {{in, in + 2998, 2999, 1, 1, -2998}}};
    ASSERT_TRUE(goes_by_fourier(s));
    auto x = testing::random_values<float>(in, 1), w = testing::random_values<float>(2999, 2);
    for (std::int64_t i = 0; i < in; ++i)
      x[i] = i < 40 ? 1e12f * x[i] : i < in / 2 ? 0 : i < in / 2 + 100 ? 1e-12f * x[i] : x[i];
    for (std::int64_t t = 0; t < 2999; ++t)
      if (t % 5 != 0) w[t] = 0;
    const auto y = convolved(s, x, w);
    for (std::int64_t p = 0; p < s.dims[0].out; p += p < 50 ? 1 : 17) {
      double sum = 0, terms = 0;
      for (std::int64_t t = 0; t < 2999; ++t) {
        const auto at = p + t - 2998;
        if (at < 0 || at >= in) continue;
        const double term = double{w[t]} * double{x[at]};
        sum += term, terms += std::abs(term);
      }
      ASSERT_NEAR(y[p], sum, 2e-5 * terms) << in << " at " << p;
      if (terms == 0) {
        ASSERT_EQ(y[p], 0.0f);
      }
    }
  }
}

TEST(convolve, by_transforms_has_the_same_bits_for_any_number_of_threads) {
  const ConvolveShape s{float32, 3, 2, 1, 1, {{20000, 21999, 1001, 1, 1, -1500}}};
  ASSERT_TRUE(goes_by_fourier(s));
  const auto x = testing::random_values<float>(3 * 2 * 20000, 1),
             w = testing::random_values<float>(2 * 1001, 2);
  set_threads(1);
  const auto one = convolved(s, x, w);
  set_threads(3);
  const auto three = convolved(s, x, w);
  set_threads(1);
  EXPECT_EQ(one, three);
}

// The derivative by one weight, computed in double.
template <class T> double expected_weight(const ConvolveShape& s, const std::vector<T>& x,
                                          const std::vector<T>& y, std::int64_t group, std::int64_t feature,
                                          std::int64_t channel, std::int64_t tap) {
  const auto in = product_of(s, &ConvolveDim::in), out = product_of(s, &ConvolveDim::out);
  double sum = 0;
  for (std::int64_t image = 0; image < s.images; ++image)
    for (std::int64_t p = 0; p < out; ++p) {
      std::int64_t at = 0, stride = 1, position = p, k = tap;
      bool is_inside = true;
      for (std::size_t d = s.dims.size(); d-- > 0;) {
        const auto& dim = s.dims[d];
        const auto i = position % dim.out * dim.stride + k % dim.taps * dim.dilation + dim.first;
        is_inside = is_inside && i >= 0 && i < dim.in;
        at += i * stride, stride *= dim.in, position /= dim.out, k /= dim.taps;
      }
      if (is_inside)
        sum += double{x[((image * s.groups + group) * s.channels + channel) * in + at]} *
               double{y[((image * s.groups + group) * s.features + feature) * out + p]};
    }
  return sum;
}

template <class T> void expect_weights(const ConvolveShape& s, std::int64_t poisoned) {
  const auto in = product_of(s, &ConvolveDim::in), taps = product_of(s, &ConvolveDim::taps),
             out = product_of(s, &ConvolveDim::out);
  auto x = testing::random_values<T>(s.images * s.groups * s.channels * in, 1);
  const auto y = testing::random_values<T>(s.images * s.groups * s.features * out, 2);
  if (poisoned >= 0 && poisoned < static_cast<std::int64_t>(x.size()))
    x[poisoned] = std::numeric_limits<T>::infinity();
  std::vector<T> w(s.groups * s.features * s.channels * taps + 8, T(77));
  convolve_weights(s, reinterpret_cast<const std::byte*>(x.data()),
                   reinterpret_cast<const std::byte*>(y.data()), reinterpret_cast<std::byte*>(w.data()));
  std::int64_t e = 0;
  for (std::int64_t g = 0; g < s.groups; ++g)
    for (std::int64_t f = 0; f < s.features; ++f)
      for (std::int64_t c = 0; c < s.channels; ++c)
        for (std::int64_t t = 0; t < taps; ++t, ++e) {
          const double wanted = expected_weight(s, x, y, g, f, c, t);
          if (std::isfinite(wanted))
            ASSERT_NEAR(w[e], wanted, 1e-4 * (1 + std::abs(wanted))) << g << " " << f << " " << c << " " << t;
          else
            ASSERT_FALSE(std::isfinite(w[e])) << g << " " << f << " " << c << " " << t;
        }
  for (; e < static_cast<std::int64_t>(w.size()); ++e) ASSERT_EQ(w[e], T(77));
}

// Shapes of one to three dims whose rows are much longer than the kernel; windows begin and end anywhere.
std::vector<ConvolveShape> shapes_of_tiles() {
  std::mt19937 random(9);
  const auto pick = [&](int lo, int hi) {
    return lo + static_cast<std::int64_t>(random() % static_cast<unsigned>(hi - lo + 1));
  };
  std::vector<ConvolveShape> shapes;
  for (int round = 0; round < 60; ++round) {
    const int ndim = 1 + round % 3;
    ConvolveShape s{round % 2 ? float32 : float64, pick(1, 2), pick(1, 2), pick(1, 5), pick(4, 19), {}};
    for (int d = 0; d < ndim; ++d) {
      ConvolveDim dim{ndim == 1 ? pick(150, 700) : pick(9, 25), 0, pick(1, 3), 1, pick(1, 2), 0};
      dim.first = pick(-3, 1);
      dim.out = std::max<std::int64_t>(1, dim.in - (dim.taps - 1) * dim.dilation - dim.first + pick(-2, 3));
      s.dims.push_back(dim);
    }
    shapes.push_back(s);
  }
  // Rows that do not fit the cache together: several parts of an image, the last one shorter.
  shapes.push_back({float32, 1, 1, 70, 5, {{50, 49, 3, 1, 1, -1}, {60, 61, 1, 1, 1, -1}}});
  shapes.push_back({float64, 2, 1, 2, 9, {{40'001, 40'001, 3, 1, 1, -2}}});
  return shapes;
}

TEST(convolve, tiles_equal_the_definition) {
  int by_tiles = 0;
  for (const auto& s : shapes_of_tiles()) {
    by_tiles += goes_by_tiles(s);
    if (s.dtype == float32)
      expect_convolution<float>(s);
    else
      expect_convolution<double>(s);
  }
  EXPECT_GT(by_tiles, 35);
}

TEST(convolve, weights_of_tiles_equal_the_definition) {
  std::int64_t round = 0;
  for (const auto& s : shapes_of_tiles()) {
    const auto poisoned = ++round % 4 == 0 ? round * 7 : -1;
    if (s.dtype == float32)
      expect_weights<float>(s, poisoned);
    else
      expect_weights<double>(s, poisoned);
  }
}

TEST(convolve, many_taps_equal_the_definition) {
  for (const std::int64_t poisoned : {-1, 40}) {
    expect_convolution<float>({float32, 3, 1, 2, 5, {{20, 3, 18, 1, 1, 0}, {21, 2, 20, 1, 1, 0}}}, poisoned);
    expect_convolution<float>({float32, 2, 1, 3, 4, {{19, 3, 17, 1, 1, -1}, {20, 3, 20, 1, 1, -1}}},
                              poisoned);
    expect_convolution<double>({float64, 5, 1, 1, 7, {{700, 2, 690, 3, 1, -2}}}, poisoned);
    expect_convolution<float>({float32, 2, 1, 2, 4, {{700, 3, 300, 2, 2, 5}}}, poisoned);
    expect_convolution<float>({float32, 2, 2, 2, 4, {{300, 3, 298, 1, 1, 0}}}, poisoned);
  }
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
