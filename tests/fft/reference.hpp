// Transforms by definition, in long double, and random shardings over the job's ranks.
#pragma once
#include <tessera/fft.hpp>
#include <tessera/runtime.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

namespace tessera::test {

using Complex = std::complex<double>;
using Values = std::vector<Complex>;

inline std::int64_t elements(const Shape& shape) { return shape.elements(); }

// A transform along one dim: n points (the operand is cropped or zero-padded), sign -1 or +1, no scale.
inline Values naive_dft(const Values& x, const Shape& shape, int dim, std::int64_t n, int sign) {
  const auto d = static_cast<std::size_t>(dim);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) (i < d ? outer : i > d ? inner : n) *= i == d ? 1 : shape[i];
  std::vector<std::complex<long double>> root(n);
  for (std::int64_t e = 0; e < n; ++e) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(sign * e) /
                              static_cast<long double>(n);
    root[e] = {std::cos(angle), std::sin(angle)};
  }
  const auto given = std::min(n, shape[d]);
  Values result(outer * n * inner);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = 0; i < inner; ++i) {
        std::complex<long double> sum = 0;
        for (std::int64_t j = 0; j < given; ++j)
          sum += std::complex<long double>(x[(o * shape[d] + j) * inner + i]) * root[j * k % n];
        result[(o * n + k) * inner + i] = Complex(sum);
      }
  return result;
}

inline Values first_along(const Values& x, const Shape& shape, int dim, std::int64_t kept) {
  const auto d = static_cast<std::size_t>(dim);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) (i < d ? outer : inner) *= i == d ? 1 : shape[i];
  Values result;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t j = 0; j < kept * inner; ++j) result.push_back(x[o * shape[d] * inner + j]);
  return result;
}

struct RandomSource {
  std::mt19937_64 engine;
  explicit RandomSource(std::uint64_t seed) : engine(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n));
  }
  double unit() { return static_cast<double>(engine() >> 11) * 0x1p-53 * 2 - 1; }
  Values values(const Shape& shape, bool is_complex) {
    Values v(elements(shape));
    for (auto& x : v) {
      const double re = unit();
      x = {re, is_complex ? unit() : 0};
    }
    return v;
  }
  // A mesh of 1 to 3 axes over some of the ranks, in random order, and a spec for ndim dims: any axis on any
  // dim or on none.
  Sharding sharding(int ndim) {
    const int ranks = process_count();
    std::vector<int> ids(ranks);
    for (int i = 0; i < ranks; ++i) ids[i] = i;
    std::shuffle(ids.begin(), ids.end(), engine);
    std::vector<int> sizes;
    int product = 1;
    const int axes = 1 + static_cast<int>(below(3));
    for (int a = 0; a < axes; ++a) {
      const int size = 1 + static_cast<int>(below(ranks / product));
      sizes.push_back(size);
      product *= size;
    }
    if (below(2) == 0) sizes[0] *= ranks / product, product *= ranks / product;
    ids.resize(product);
    static const std::vector<std::string> names = {"x", "y", "z"};
    const Mesh mesh(NdDevices(sizes, ids), {names.begin(), names.begin() + axes});
    std::vector<std::vector<int>> dims(ndim);
    for (int a = 0; a < axes; ++a)
      if (const auto d = below(ndim + 1); d < ndim) dims[d].push_back(a);
    return Sharding::from_dim_axes(mesh, dims);
  }
};

inline Array complex_array(const Values& values, const Shape& shape, Dtype dtype) {
  return astype(array(values, shape), dtype);
}
inline Array real_array(const Values& values, const Shape& shape, Dtype dtype) {
  std::vector<double> re;
  for (const auto& v : values) re.push_back(v.real());
  return astype(array(re, shape), dtype);
}
inline double tolerance(Dtype dtype) { return real_dtype(dtype) == float32 ? 1e-5 : 1e-12; }

// Checks |a - b| <= tolerance * |b| in the 2-norm, and the shape.
inline void expect_close(const Array& result, const Values& expected, const Shape& shape, double relative,
                         const std::string& what) {
  ASSERT_EQ(result.shape(), shape) << what;
  const auto got = to_vector<Complex>(result);
  ASSERT_EQ(got.size(), expected.size()) << what;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    difference += std::norm(got[i] - expected[i]), size += std::norm(expected[i]);
  EXPECT_LE(std::sqrt(difference), relative * std::sqrt(size) + 1e-300) << what;
}

}  // namespace tessera::test
