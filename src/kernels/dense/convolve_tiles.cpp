#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/convolve_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/dense/convolve_tiles.hpp"
#include "kernels/parallel.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int vectors = 3,
              features = HWY_TARGET <= HWY_AVX3 ? 8 : 4;  // 24 of 32 registers hold sums, or 12 of 16
template <class T> using Vector = hn::Vec<hn::ScalableTag<T>>;

// out[f][p] = the sum over k of w[k][f] x[offsets[k] + p] for three vectors of positions.
template <class T>
void SumTile(const T* x, const std::int64_t* offsets, const T* HWY_RESTRICT w, std::int64_t depth, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Vector<T> sum[features][vectors];
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) sum[f][v] = hn::Zero(d);
  for (std::int64_t k = 0; k < depth; ++k, w += features) {
    Vector<T> at[vectors];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) at[v] = hn::LoadU(d, x + offsets[k] + v * lanes);
#pragma GCC unroll 8
    for (int f = 0; f < features; ++f) {
      const auto weight = hn::Set(d, w[f]);
#pragma GCC unroll 3
      for (int v = 0; v < vectors; ++v) sum[f][v] = hn::MulAdd(at[v], weight, sum[f][v]);
    }
  }
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) hn::StoreU(sum[f][v], d, out + (f * vectors + v) * lanes);
}

// sums[f][k] = the sum over n positions, a multiple of the lanes, of y[f][p] x[k][p] for three lines x.
template <class T> void DotTile(const T* const* y, const T* const* x, std::int64_t n, T* sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Vector<T> sum[features][vectors];
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f)
#pragma GCC unroll 3
    for (int k = 0; k < vectors; ++k) sum[f][k] = hn::Zero(d);
  for (std::int64_t p = 0; p < n; p += lanes) {
    Vector<T> at[vectors];
#pragma GCC unroll 3
    for (int k = 0; k < vectors; ++k) at[k] = hn::LoadU(d, x[k] + p);
#pragma GCC unroll 8
    for (int f = 0; f < features; ++f) {
      const auto line = hn::LoadU(d, y[f] + p);
#pragma GCC unroll 3
      for (int k = 0; k < vectors; ++k) sum[f][k] = hn::MulAdd(at[k], line, sum[f][k]);
    }
  }
#pragma GCC unroll 8
  for (int f = 0; f < features; ++f)
#pragma GCC unroll 3
    for (int k = 0; k < vectors; ++k) sums[f * vectors + k] = hn::GetLane(hn::SumOfLanes(d, sum[f][k]));
}

template <class T> TileFunctions<T> functions_of() {
  return {SumTile<T>, DotTile<T>, features, static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()))};
}
TileFunctions<float> TilesOfFloats() { return functions_of<float>(); }
TileFunctions<double> TilesOfDoubles() { return functions_of<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(TilesOfFloats);
HWY_EXPORT(TilesOfDoubles);

namespace {

using Extents = std::vector<std::int64_t>;
constexpr int lines_at_once = 3;  // vectors of a tile, or lines of x of a tile of products

template <class T> TileFunctions<T> tile_functions();
template <> TileFunctions<float> tile_functions() { return HWY_DYNAMIC_DISPATCH(TilesOfFloats)(); }
template <> TileFunctions<double> tile_functions() { return HWY_DYNAMIC_DISPATCH(TilesOfDoubles)(); }

std::int64_t product(const Extents& extents, std::size_t from = 0) {
  std::int64_t n = 1;
  for (std::size_t d = from; d < extents.size(); ++d) n *= extents[d];
  return n;
}
std::int64_t up_to_multiple(std::int64_t n, std::int64_t of) { return (n + of - 1) / of * of; }

// Copies the box of `from` that begins at `starts`; what lies outside of it is 0.
template <class T> T* copy_box(const T* from, const Extents& extents, const Extents& starts,
                               const Extents& box, T* to, std::size_t d = 0) {
  const auto inner = product(extents, d + 1), inner_box = product(box, d + 1);
  const auto inside = std::clamp<std::int64_t>(-starts[d], 0, box[d]),
             beyond = std::clamp(extents[d] - starts[d], inside, box[d]);
  to = std::fill_n(to, inside * inner_box, T{});
  if (d + 1 == box.size())
    to = std::copy_n(from + starts[d] + inside, beyond - inside, to);
  else
    for (auto i = inside; i < beyond; ++i)
      to = copy_box(from + (starts[d] + i) * inner, extents, starts, box, to, d + 1);
  return std::fill_n(to, (box[d] - beyond) * inner_box, T{});
}

// Rows of the outermost dim of one image and group at a time: their padded channels fit the second-level
// cache.
class Padded {
 public:
  explicit Padded(const ConvolveShape& shape) : shape_(shape) {
    for (const auto& dim : shape.dims) {
      in_.push_back(dim.in), out_.push_back(dim.out), first_.push_back(dim.first);
      padded_.push_back(dim.out + (dim.taps - 1) * dim.dilation);
      taps_ *= dim.taps;
    }
    const auto elements = (std::int64_t{512} << 10) / static_cast<std::int64_t>(itemsize(shape.dtype));
    rows_ = std::clamp<std::int64_t>(elements / (shape.channels * row()) - reach(), 1, out_[0]);
  }

  std::int64_t row() const { return product(padded_, 1); }  // padded positions of one outermost position
  std::int64_t reach() const { return padded_[0] - out_[0]; }
  std::int64_t rows() const { return rows_; }
  std::int64_t all_rows() const { return out_[0]; }
  std::int64_t depth() const { return shape_.channels * taps_; }
  std::int64_t in_size() const { return product(in_); }
  std::int64_t out_size() const { return product(out_); }
  std::int64_t channel(std::int64_t rows) const { return (rows + reach()) * row(); }  // elements of one
  // The share of positions that belong to an output.
  double density() const { return static_cast<double>(product(out_, 1)) / static_cast<double>(row()); }

  // The distance from a position to what channel and tap k read, for `rows` rows.
  Extents offsets(std::int64_t rows) const {
    Extents result;
    for (std::int64_t k = 0; k < depth(); ++k) {
      std::int64_t at = 0, tap = k % taps_;
      for (std::size_t d = padded_.size(); d-- > 0; tap /= shape_.dims[d].taps)
        at += tap % shape_.dims[d].taps * shape_.dims[d].dilation * product(padded_, d + 1);
      result.push_back(k / taps_ * channel(rows) + at);
    }
    return result;
  }

  template <class T>
  void pad_channels(const T* image, std::int64_t step, std::int64_t first, std::int64_t rows, T* to) const {
    Extents starts = first_, box = padded_;
    starts[0] += first, box[0] = rows + reach();
    share(shape_.channels, worth_a_thread(channel(rows) * static_cast<std::int64_t>(sizeof(T))),
          [&](std::int64_t begin, std::int64_t end) {
            for (auto c = begin; c < end; ++c)
              copy_box(image + c * step, in_, starts, box, to + c * channel(rows));
          });
  }
  // Lines of y at the positions of padded rows, `line` elements apart.
  template <class T> void spread_features(const T* y, std::int64_t step, std::int64_t first,
                                          std::int64_t rows, std::int64_t line, T* to) const {
    Extents starts(out_.size(), 0), box = padded_;
    starts[0] = first, box[0] = rows;
    share(shape_.features, worth_a_thread(line * static_cast<std::int64_t>(sizeof(T))),
          [&](std::int64_t begin, std::int64_t end) {
            for (auto f = begin; f < end; ++f) {
              T* const last = copy_box(y + f * step, out_, starts, box, to + f * line);
              std::fill(last, to + (f + 1) * line, T{});
            }
          });
  }

  // Calls use(number of the output position, number of the padded position, count) for each run of positions
  // [first, first + count) of `rows` rows that belong to outputs.
  template <class Use>
  void for_each_run(std::int64_t rows, std::int64_t first, std::int64_t count, Use&& use) const {
    const bool is_line = out_.size() == 1;
    const auto width = is_line ? rows : padded_.back(), kept = is_line ? rows : out_.back();
    const auto stop = std::min(first + count, rows * row());
    for (auto p = first; p < stop;) {
      const auto line = p / width, column = p % width, end = std::min(stop, (line + 1) * width);
      if (const auto to = is_line ? 0 : output_line(line); to >= 0 && column < kept)
        use(to * kept + column, p, std::min(end - p, kept - column));
      p = end;
    }
  }

 private:
  // The number of an innermost line among those of outputs; -1 in the padding of an outer dim.
  std::int64_t output_line(std::int64_t line) const {
    std::int64_t result = 0, stride = 1;
    for (std::size_t d = out_.size() - 1; d-- > 1;) {
      const auto at = line % padded_[d];
      if (at >= out_[d]) return -1;
      result += at * stride, stride *= out_[d], line /= padded_[d];
    }
    return result + line * stride;
  }

  const ConvolveShape& shape_;
  Extents in_, out_, first_, padded_;
  std::int64_t taps_ = 1, rows_ = 1;
};

// The least number of tiles of `flops` each that is worth a thread.
std::int64_t worth_tiles(std::int64_t flops) { return 1 + 500000 / std::max<std::int64_t>(flops, 1); }

// weights (features, depth) as (strips, depth, features of a strip); absent features are 0.
template <class T>
std::vector<T> in_strips(const T* weights, std::int64_t features, std::int64_t depth, std::int64_t width) {
  std::vector<T> result(static_cast<std::size_t>(up_to_multiple(features, width) * depth));
  for (std::int64_t f = 0; f < features; ++f)
    for (std::int64_t k = 0; k < depth; ++k)
      result[(f / width * depth + k) * width + f % width] = weights[f * depth + k];
  return result;
}

template <class T> class Tiles {
 public:
  explicit Tiles(const ConvolveShape& shape, ImageOrder order = ImageOrder::outer)
      : shape_(shape),
        order_(order),
        padded_(shape),
        tile_(tile_functions<T>()),
        positions_(lines_at_once * tile_.lanes),
        x_(static_cast<std::size_t>(shape.channels * padded_.channel(padded_.rows()) + padded_.channel(1) +
                                    positions_)) {}

  void convolve(const T* x, const T* weights, T* y) {
    const auto own_weights = shape_.features * padded_.depth();
    std::vector<std::vector<T>> strips;
    for (std::int64_t g = 0; g < shape_.groups; ++g)
      strips.push_back(
          in_strips(weights + g * own_weights, shape_.features, padded_.depth(), tile_.features));
    for_each_part(x, [&](std::int64_t block, std::int64_t first, std::int64_t rows) {
      T* const out = y + block * shape_.features * padded_.out_size() +
                     first * (padded_.out_size() / padded_.all_rows());
      sum_tiles(rows, strips[block % shape_.groups].data(), out);
    });
  }

  bool add_weights(const T* x, const T* y, T* weights) {
    const auto own_weights = shape_.features * padded_.depth();
    const auto line = up_to_multiple(padded_.rows() * padded_.row(), tile_.lanes);
    y_.resize(static_cast<std::size_t>(shape_.features * line));
    for_each_part(x, [&](std::int64_t block, std::int64_t first, std::int64_t rows) {
      const auto [start, step] = place_of(block, shape_.features, padded_.out_size());
      padded_.spread_features(y + start, step, first, rows, line, y_.data());
      dot_tiles(line, up_to_multiple(rows * padded_.row(), tile_.lanes),
                weights + block % shape_.groups * own_weights);
    });
    T others{};
    for (std::int64_t i = 0; i < shape_.groups * own_weights; ++i) others += weights[i] * T(0);
    return others == T(0);
  }

 private:
  // The first of `lines` lines of an image and group, and the distance between them.
  std::pair<std::int64_t, std::int64_t> place_of(std::int64_t block, std::int64_t lines,
                                                 std::int64_t size) const {
    if (order_ == ImageOrder::inner) return {block * size, shape_.images * size};
    return {block * lines * size, size};
  }

  // Calls use(image and group, first row, rows) with their channels padded in x_, and offsets_ for them.
  template <class Use> void for_each_part(const T* x, Use&& use) {
    std::int64_t rows_before = -1;
    for (std::int64_t block = 0; block < shape_.images * shape_.groups; ++block)
      for (std::int64_t first = 0; first < padded_.all_rows(); first += padded_.rows()) {
        const auto rows = std::min(padded_.rows(), padded_.all_rows() - first);
        if (rows != rows_before) offsets_ = padded_.offsets(rows), rows_before = rows;
        const auto [start, step] = place_of(block, shape_.channels, padded_.in_size());
        padded_.pad_channels(x + start, step, first, rows, x_.data());
        use(block, first, rows);
      }
  }

  void sum_tiles(std::int64_t rows, const T* strips, T* y) const {
    const auto depth = padded_.depth();
    const auto count = (rows * padded_.row() + positions_ - 1) / positions_;
    share(count, worth_tiles(2 * depth * positions_ * shape_.features),
          [&](std::int64_t begin, std::int64_t end) {
            HWY_ALIGN T sums[512];
            for (auto p = begin * positions_; p < end * positions_; p += positions_)
              for (std::int64_t f = 0; f < shape_.features; f += tile_.features) {
                tile_.sum(x_.data() + p, offsets_.data(), strips + f * depth, depth, sums);
                put(rows, p, sums, std::min(tile_.features, shape_.features - f), y + f * padded_.out_size());
              }
          });
  }
  void put(std::int64_t rows, std::int64_t p, const T* sums, std::int64_t features, T* y) const {
    padded_.for_each_run(rows, p, positions_, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      for (std::int64_t f = 0; f < features; ++f)
        std::copy_n(sums + f * positions_ + from - p, count, y + f * padded_.out_size() + to);
    });
  }

  // Adds the products of all positions of the rows, a piece of them at a time that fits the first-level
  // cache.
  void dot_tiles(std::int64_t line, std::int64_t positions, T* weights) const {
    constexpr auto piece = static_cast<std::int64_t>(4096 / sizeof(T));
    const auto depth = padded_.depth(), across = (depth + lines_at_once - 1) / lines_at_once,
               down = (shape_.features + tile_.features - 1) / tile_.features;
    share(across * down, worth_tiles(2 * positions * tile_.features * lines_at_once),
          [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t p = 0; p < positions; p += piece)
              for (auto t = begin; t < end; ++t)
                add_dots(line, p, std::min(piece, positions - p), t / across * tile_.features,
                         t % across * lines_at_once, weights);
          });
  }
  void add_dots(std::int64_t line, std::int64_t p, std::int64_t n, std::int64_t f, std::int64_t k,
                T* weights) const {
    const auto depth = padded_.depth();
    const T *ys[16], *xs[lines_at_once];
    T sums[16 * lines_at_once];
    for (std::int64_t i = 0; i < tile_.features; ++i)
      ys[i] = y_.data() + std::min(f + i, shape_.features - 1) * line + p;
    for (std::int64_t i = 0; i < lines_at_once; ++i)
      xs[i] = x_.data() + offsets_[std::min(k + i, depth - 1)] + p;
    tile_.dot(ys, xs, n, sums);
    for (std::int64_t i = 0; i < std::min(tile_.features, shape_.features - f); ++i)
      for (std::int64_t j = 0; j < std::min<std::int64_t>(lines_at_once, depth - k); ++j)
        weights[(f + i) * depth + k + j] += sums[i * lines_at_once + j];
  }

  const ConvolveShape& shape_;
  ImageOrder order_;
  Padded padded_;
  TileFunctions<T> tile_;
  std::int64_t positions_;
  std::vector<T> x_, y_;
  Extents offsets_;
};

template <class F> auto visit_real(Dtype dtype, F&& f) { return dtype == float32 ? f(float{}) : f(double{}); }

}  // namespace

bool goes_by_tiles(const ConvolveShape& shape) {
  if ((shape.dtype != float32 && shape.dtype != float64) || shape.dims.empty() || shape.is_ordered)
    return false;
  if (shape.features < 4 || shape.channels == 0) return false;
  for (const auto& dim : shape.dims)
    if (dim.stride != 1 || dim.out <= 0 || dim.in <= 0) return false;
  constexpr std::int64_t enough_positions = 128;
  constexpr double dense_enough = 0.6;
  const Padded padded(shape);
  return padded.rows() * padded.row() >= enough_positions && padded.density() >= dense_enough;
}

void convolve_tiles(const ConvolveShape& shape, const std::byte* x, const std::byte* weights, std::byte* y) {
  visit_real(shape.dtype, [&]<class T>(T) {
    Tiles<T>(shape).convolve(reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(weights),
                             reinterpret_cast<T*>(y));
  });
}

bool convolve_weights_tiles(const ConvolveShape& shape, const std::byte* x, const std::byte* y,
                            std::byte* weights, ImageOrder order) {
  return visit_real(shape.dtype, [&]<class T>(T) {
    return Tiles<T>(shape, order)
        .add_weights(reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(y),
                     reinterpret_cast<T*>(weights));
  });
}

}  // namespace tessera::kernels
#endif
