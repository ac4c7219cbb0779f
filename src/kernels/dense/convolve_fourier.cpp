#include "kernels/dense/convolve_fourier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "base/thresholds.hpp"
#include "kernels/dense/convolve_lines.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/fourier/fft.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/reduce_rows.hpp"

namespace tessera::kernels {
namespace {

using Complex = std::complex<double>;

// Element f of all shifts, f = 0 .. in + taps - 2, is the sum over t of taps[t] x[f - (taps - 1) + t]; the
// result has some of them. A block of `step` elements from f is the end of the circular convolution of
// `points` elements of x. One block with room for all of x and its shifts has no beginning to drop.
//
//   one block:  x 0 0 0                 several:   [x x x x] [x x x x]
//               f = 0 ...                           - - f f   - - f f     dropped: taps - 1
struct FourierBlocks {
  std::int64_t points = 0, step = 0, dropped = 0, count = 0;

  // In units of one step of a transform.
  double cost() const {
    const auto n = static_cast<double>(points);
    return n * std::log2(n) * static_cast<double>(2 * count + 1);
  }
};

FourierBlocks one_block(const ConvolveDim& line) {
  const auto all = line.in + line.taps - 1;
  return {static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(all))), all, 0, 1};
}

// The cheapest blocks whose buffers fit a cache, or one block.
FourierBlocks blocks_of(const ConvolveDim& line) {
  constexpr std::int64_t most_points = std::int64_t{1} << 16;
  FourierBlocks best = one_block(line);
  for (std::int64_t points = 64; points <= most_points; points *= 2) {
    if (points < 2 * line.taps) continue;
    const auto step = points - line.taps + 1;
    const FourierBlocks blocks{points, step, line.taps - 1, (line.out + step - 1) / step};
    if (blocks.cost() < best.cost()) best = blocks;
  }
  return best;
}

class FourierLines {
 public:
  FourierLines(const ConvolveShape& shape, const float* x, const float* weights, float* y)
      : shape_(shape), line_(shape.dims[0]), blocks_(blocks_of(line_)), x_(x), weights_(weights), y_(y) {}

  void run() const {
    for (std::int64_t group = 0; group < shape_.groups; ++group) {
      const float* const taps = weights_ + group * line_.taps;
      Buffers of_taps(blocks_.points);
      std::reverse_copy(taps, taps + line_.taps, of_taps.window.begin());
      const double length = of_taps.length();
      transform(of_taps, 1.0 / static_cast<double>(blocks_.points));
      share(shape_.images * blocks_.count, 1, [&](std::int64_t begin, std::int64_t end) {
        Buffers buffers(blocks_.points);
        for (auto i = begin; i < end; ++i)
          compute(i / blocks_.count * shape_.groups + group, group, i % blocks_.count, of_taps.spectrum,
                  length, buffers);
      });
    }
  }

 private:
  using Spectrum = std::vector<Complex>;
  struct Buffers {
    explicit Buffers(std::int64_t points)
        : window(static_cast<std::size_t>(points), 0.0), spectrum(static_cast<std::size_t>(points / 2 + 1)) {}
    double length() const {
      double squares = 0;
      sum_squares_of_rows(float64, window.data(), 1, static_cast<std::int64_t>(window.size()), &squares);
      return std::sqrt(squares);
    }
    std::vector<double> window;
    Spectrum spectrum;
  };

  // Planned from the shape alone: all ranks and blocks compute the same bits.
  void transform(Buffers& b, double scale) const {
    constexpr int only[] = {0};
    fft_dense(complex128, FftKind::r2c, FftSign::forward, only, Shape{blocks_.points},
              Shape{blocks_.points / 2 + 1}, b.window.data(), b.spectrum.data(), scale, FftPlanning::alike);
  }
  void transform_back(Buffers& b) const {
    constexpr int only[] = {0};
    fft_dense(complex128, FftKind::c2r, FftSign::backward, only, Shape{blocks_.points / 2 + 1},
              Shape{blocks_.points}, b.spectrum.data(), b.window.data(), 1.0, FftPlanning::alike);
  }

  // One block of a line of the result.
  void compute(std::int64_t line, std::int64_t group, std::int64_t block, const Spectrum& of_taps,
               double length_of_taps, Buffers& b) const {
    const bool is_single = blocks_.dropped == 0;
    const auto first = is_single ? std::int64_t{0} : block * blocks_.step;
    const auto count = is_single ? line_.out : std::min(blocks_.step, line_.out - first);
    load(x_ + line * line_.in, is_single ? std::int64_t{0} : first + line_.first, b.window);
    const double length = b.length() * length_of_taps;
    float* const out = y_ + line * line_.out + first;
    if (!std::isfinite(length)) return sum_directly(line, group, first, count, out);

    transform(b, 1.0);
    const void* factors[] = {b.spectrum.data(), of_taps.data()};
    map<"multiply">.of(complex128)(factors, b.spectrum.data(), static_cast<std::int64_t>(of_taps.size()));
    transform_back(b);
    const auto at = is_single ? line_.first + line_.taps - 1 : blocks_.dropped;
    const auto inside = std::clamp<std::int64_t>(-at, 0, count),
               beyond =
                   std::clamp<std::int64_t>((is_single ? blocks_.step : blocks_.points) - at, inside, count);
    std::fill_n(out, inside, 0.0f);
    const void* values[] = {b.window.data() + at + inside};
    if (beyond > inside) find_cast(float64, float32)(values, out + inside, beyond - inside);
    std::fill(out + beyond, out + count, 0.0f);
    mend_small(line, group, first + inside, beyond - inside, length, out + inside);
  }

  // Elements of x from `start` on, zeros beyond its ends.
  void load(const float* x, std::int64_t start, std::vector<double>& window) const {
    const auto from = std::clamp<std::int64_t>(-start, 0, blocks_.points),
               to = std::clamp<std::int64_t>(line_.in - start, from, blocks_.points);
    std::fill(window.begin(), window.begin() + from, 0.0);
    const void* source[] = {x + start + from};
    if (to > from) find_cast(float32, float64)(source, window.data() + from, to - from);
    std::fill(window.begin() + to, window.end(), 0.0);
  }

  // A transform's error is relative to the lengths of both operands: at most about 3 log2(points) units of
  // float64 times their product. Smaller results than 2^26 times that may have lost digits of float32.
  void mend_small(std::int64_t line, std::int64_t group, std::int64_t first, std::int64_t count,
                  double length, float* out) const {
    const double error = 3 * std::log2(static_cast<double>(blocks_.points)) * 0x1p-53 * length;
    const auto limit = static_cast<float>(0x1p26 * error);
    std::int64_t small = 0;
    for (std::int64_t p = 0; p < count; ++p) small += std::abs(out[p]) <= limit ? 1 : 0;
    const auto few = 8 + count / 256;  // more: sums of neighbours in vectors are quicker
    if (small > few) return sum_directly(line, group, first, count, out);
    for (std::int64_t p = 0; p < count && small > 0; ++p) {
      if (std::abs(out[p]) > limit) continue;
      out[p] = sum_of_one(x_ + line * line_.in, weights_ + group * line_.taps, first + p + line_.first);
      --small;
    }
  }
  // The sum of the taps times the elements from `at` on.
  float sum_of_one(const float* x, const float* taps, std::int64_t at) const {
    constexpr int lanes = 16;
    const auto begin = std::clamp<std::int64_t>(-at, 0, line_.taps),
               end = std::clamp<std::int64_t>(line_.in - at, begin, line_.taps);
    double sums[lanes] = {};
    auto t = begin;
    for (; t + lanes <= end; t += lanes)
      for (int l = 0; l < lanes; ++l)
        sums[l] += static_cast<double>(taps[t + l]) * static_cast<double>(x[at + t + l]);
    for (; t < end; ++t) sums[0] += static_cast<double>(taps[t]) * static_cast<double>(x[at + t]);
    return static_cast<float>(std::accumulate(sums, sums + lanes, 0.0));
  }

  // Positions [first, first + count) of a line by convolve_lines().
  void sum_directly(std::int64_t line, std::int64_t group, std::int64_t first, std::int64_t count,
                    float* out) const {
    ConvolveShape part{shape_.dtype, 1, 1, 1, 1, {line_}};
    part.dims[0].out = count;
    part.dims[0].first += first;
    convolve_lines(part, reinterpret_cast<const std::byte*>(x_ + line * line_.in),
                   reinterpret_cast<const std::byte*>(weights_ + group * line_.taps),
                   reinterpret_cast<std::byte*>(out));
  }

  const ConvolveShape& shape_;
  const ConvolveDim& line_;
  FourierBlocks blocks_;
  const float *x_, *weights_;
  float* y_;
};

}  // namespace

bool goes_by_fourier(const ConvolveShape& shape) {
  if (shape.dtype != float32 || shape.dims.size() != 1 || shape.channels != 1 || shape.features != 1)
    return false;
  const auto& line = shape.dims[0];
  if (line.stride != 1 || line.dilation != 1) return false;
  const std::int64_t few_taps = threshold(128, 4);
  if (std::min({line.taps, line.in, line.out}) < few_taps) return false;
  const auto sums_in_a_step = static_cast<double>(threshold(5, 0));  // one step of a transform takes as long
  const auto sums = static_cast<double>(std::min(line.in, line.out)) * static_cast<double>(line.taps);
  return sums > sums_in_a_step * blocks_of(line).cost();
}

void convolve_fourier(const ConvolveShape& shape, const std::byte* x, const std::byte* weights,
                      std::byte* y) {
  FourierLines(shape, reinterpret_cast<const float*>(x), reinterpret_cast<const float*>(weights),
               reinterpret_cast<float*>(y))
      .run();
}

}  // namespace tessera::kernels
