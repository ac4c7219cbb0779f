// Transforms of split arrays compared with the definition.
#include "base/settings.hpp"
#include "fft/reference.hpp"
#include "support/text.hpp"

#include <gmock/gmock.h>

namespace tessera::test {
namespace {

struct Case {
  Shape shape;
  std::vector<int> dims;
  std::vector<std::int64_t> lengths;
  Sharding sharding;
  Dtype dtype;
  std::string norm;
  std::string text() const {
    std::string t = printed(shape) + " dims";
    for (std::size_t i = 0; i < dims.size(); ++i)
      t += " " + std::to_string(dims[i]) + (lengths.empty() ? "" : ":" + std::to_string(lengths[i]));
    return t + " " + printed(sharding) + " " + name(dtype) + " " + norm;
  }
};

Case random_case(RandomSource& random) {
  const int ndim = 1 + static_cast<int>(random.below(4));
  std::vector<std::int64_t> extents;
  const std::int64_t most[] = {40, 14, 9, 6};
  for (int d = 0; d < ndim; ++d) extents.push_back(1 + random.below(most[ndim - 1]));
  std::vector<int> dims(ndim);
  for (int d = 0; d < ndim; ++d) dims[d] = d;
  std::shuffle(dims.begin(), dims.end(), random.engine);
  dims.resize(1 + random.below(ndim));
  std::vector<std::int64_t> lengths;
  if (random.below(3) == 0)
    for (const int d : dims) lengths.push_back(1 + random.below(2 * extents[d]));
  static const std::string norms[] = {"backward", "ortho", "forward"};
  return {
      Shape(extents),        dims, lengths, random.sharding(ndim), random.below(2) ? complex128 : complex64,
      norms[random.below(3)]};
}

double scale(const std::string& norm, bool is_forward, double points) {
  if (norm == "ortho") return 1 / std::sqrt(points);
  return (norm == "forward") == is_forward ? 1 / points : 1;
}

fft::FftOptions options_of(const Case& c, RandomSource& random, Sharding& given) {
  fft::FftOptions options{.axes = c.dims, .norm = c.norm, .s = c.lengths};
  const auto where = random.below(3);
  if (where == 1) options.out_sharding = fft::transposed;
  if (where == 2) options.out_sharding = fft::OutSharding::given, options.given = given;
  return options;
}

Sharding with_shuffled_dims(const Case& c, RandomSource& random) {
  auto dims = c.sharding.dim_axes(c.shape.ndim());
  std::shuffle(dims.begin(), dims.end(), random.engine);
  return Sharding::from_dim_axes(c.sharding.mesh(), dims);
}

// The transform without a scale, its shape and its number of points.
struct Definition {
  Values values;
  Shape shape;
  double points = 1;
};
Definition by_definition(const Case& c, const Values& x, int sign) {
  Definition result{x, c.shape};
  for (std::size_t i = 0; i < c.dims.size(); ++i) {
    auto& extent = result.shape[static_cast<std::size_t>(c.dims[i])];
    const auto n = c.lengths.empty() ? extent : c.lengths[i];
    result.values = naive_dft(result.values, result.shape, c.dims[i], n, sign);
    extent = n;
    result.points *= static_cast<double>(n);
  }
  return result;
}

TEST(Transforms, any_shape_axes_lengths_and_split_give_the_full_transform) {
  RandomSource random(11);
  for (int round = 0; round < 300; ++round) {
    const Case c = random_case(random);
    const bool is_forward = random.below(2) == 0;
    const Values x = random.values(c.shape, true);
    auto given = with_shuffled_dims(c, random);
    const auto options = options_of(c, random, given);
    auto [expected, shape, points] = by_definition(c, x, is_forward ? -1 : 1);
    for (auto& v : expected) v *= scale(c.norm, is_forward, points);
    const Array split = device_put(complex_array(x, c.shape, c.dtype), c.sharding);
    const Array result = is_forward ? fft::fftn(split, options) : fft::ifftn(split, options);
    EXPECT_EQ(result.dtype(), c.dtype);
    if (options.out_sharding == fft::keep) {
      EXPECT_EQ(result.sharding(), c.sharding) << c.text();
    }
    if (options.given) {
      EXPECT_EQ(result.sharding(), *options.given) << c.text();
    }
    expect_close(result, expected, shape, tolerance(c.dtype),
                 "round " + std::to_string(round) + ": " + c.text() + " -> " + printed(result.sharding()));
    if (testing::Test::HasFailure()) break;
  }
}

TEST(Transforms, real_ones_keep_half) {
  RandomSource random(12);
  for (int round = 0; round < 200; ++round) {
    Case c = random_case(random);
    const Values x = random.values(c.shape, false);
    auto given = with_shuffled_dims(c, random);
    const auto options = options_of(c, random, given);
    auto [expected, shape, points] = by_definition(c, x, -1);
    const auto last = static_cast<std::size_t>(c.dims.back());
    const auto n_last = shape[last];
    expected = first_along(expected, shape, c.dims.back(), n_last / 2 + 1);
    shape[last] = n_last / 2 + 1;
    for (auto& v : expected) v *= scale(c.norm, true, points);
    const Array split = device_put(real_array(x, c.shape, real_dtype(c.dtype)), c.sharding);
    const Array half = fft::rfftn(split, options);
    const auto what = "round " + std::to_string(round) + ": " + c.text() + " -> " + printed(half.sharding());
    EXPECT_EQ(half.dtype(), c.dtype);
    expect_close(half, expected, shape, tolerance(c.dtype), what);
    if (c.lengths.empty()) {  // the inverse transform
      std::vector<std::int64_t> lengths;
      for (const int d : c.dims) lengths.push_back(c.shape[d]);
      const Array again = fft::irfftn(half, fft::FftOptions{.axes = c.dims, .norm = c.norm, .s = lengths});
      EXPECT_EQ(again.dtype(), real_dtype(c.dtype));
      EXPECT_EQ(again.sharding(), half.sharding()) << what;
      expect_close(again, x, c.shape, 4 * tolerance(c.dtype), "back, " + what);
    }
    if (testing::Test::HasFailure()) break;
  }
}

// Inverse real transforms of arbitrary numbers: irfft ignores the imaginary parts of the end points.
TEST(Transforms, real_inverse_of_any_numbers) {
  RandomSource random(13);
  for (int round = 0; round < 120; ++round) {
    Case c = random_case(random);
    const Values x = random.values(c.shape, true);
    const auto d = static_cast<std::size_t>(c.dims.back());
    const auto n = 1 + random.below(2 * c.shape[d] + 1), half = n / 2 + 1;
    // By definition: completes the half spectrum, then applies the plain inverse.
    Shape full_shape = c.shape;
    full_shape[d] = n;
    std::int64_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < c.shape.size(); ++i) (i < d ? outer : inner) *= i == d ? 1 : c.shape[i];
    Values full(full_shape.elements());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t i = 0; i < inner; ++i) {
          const auto source = k < half ? k : n - k;
          Complex v = source < c.shape[d] ? x[(o * c.shape[d] + source) * inner + i] : Complex(0);
          if (k == 0 || 2 * k == n) v = v.real();
          full[(o * n + k) * inner + i] = k < half ? v : std::conj(v);
        }
    auto expected = naive_dft(full, full_shape, c.dims.back(), n, 1);
    for (auto& v : expected) v *= scale(c.norm, false, static_cast<double>(n));
    const Array split = device_put(complex_array(x, c.shape, c.dtype), c.sharding);
    expect_close(fft::irfft(split, n, {.axes = {c.dims.back()}, .norm = c.norm}), expected, full_shape,
                 tolerance(c.dtype), "n " + std::to_string(n) + " " + c.text());
    if (testing::Test::HasFailure()) break;
  }
}

// One value of a line's transform, by definition.
Complex one_part(const Values& x, std::int64_t start, std::int64_t n, std::int64_t k) {
  std::complex<long double> sum = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const long double angle = -2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) /
                              static_cast<long double>(n);
    sum +=
        std::complex<long double>(x[start + j]) * std::complex<long double>(std::cos(angle), std::sin(angle));
  }
  return Complex(sum);
}

// Lines far too long for one rank: six steps, even and uneven, and lengths that are or contain large primes.
TEST(Transforms, long_lines_split_over_all_ranks) {
  const SettingScope quickly("TESSERA_FFT_PLAN", "estimate");
  const Mesh mesh = make_mesh({process_count()}, {"x"});
  RandomSource random(14);
  for (const std::int64_t n : {4096, 6000, 5041, 4999, 9998, 8191, 14997}) {
    for (const bool batched : {false, true}) {
      const Shape shape = batched ? Shape{2, n} : Shape{n};
      const Values x = random.values(shape, true), real_x = random.values(shape, false);
      const Sharding sharding = NamedSharding(mesh, batched ? P(None, "x") : P("x"));
      const auto what = std::to_string(n) + (batched ? " batched" : "");
      const Array split = device_put(complex_array(x, shape, complex128), sharding);
      const Array forward = fft::fft(split),
                  half = fft::rfft(device_put(real_array(real_x, shape, float64), sharding));
      const auto parts = to_vector<Complex>(forward), half_parts = to_vector<Complex>(half);
      for (int sample = 0; sample < 12; ++sample) {
        const auto line = batched ? random.below(2) : 0, k = sample == 0 ? n / 2 : random.below(n),
                   k_half = k % (n / 2 + 1);
        const auto at = static_cast<std::size_t>(line * n + k),
                   at_half = static_cast<std::size_t>(line * (n / 2 + 1) + k_half);
        EXPECT_LE(std::abs(parts[at] - one_part(x, line * n, n, k)), 1e-12 * std::sqrt(n))
            << what << " part " << k;
        EXPECT_LE(std::abs(half_parts[at_half] - one_part(real_x, line * n, n, k_half)), 1e-12 * std::sqrt(n))
            << what << " real, part " << k_half;
      }
      expect_close(fft::ifft(forward), x, shape, 1e-12, "back " + what);
      expect_close(fft::irfft(half, n), real_x, shape, 1e-12, "real back " + what);
      EXPECT_EQ(half.shape().back(), n / 2 + 1);
    }
  }
}

}  // namespace
}  // namespace tessera::test
