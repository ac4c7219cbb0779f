#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/convolve_lines.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dense/convolve_lines.hpp"
#include "kernels/parallel.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// y[p] += sum over t of w[t] x[p + t * dilation], in order of t.
template <class T>
void AddTaps(const T* x, const T* w, std::int64_t taps, std::int64_t dilation, T* y, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t p = 0;
  for (; p + 4 * lanes <= n; p += 4 * lanes) {
    auto a = hn::LoadU(d, y + p), b = hn::LoadU(d, y + p + lanes), c = hn::LoadU(d, y + p + 2 * lanes),
         e = hn::LoadU(d, y + p + 3 * lanes);
    for (std::int64_t t = 0; t < taps; ++t) {
      const auto weight = hn::Set(d, w[t]);
      const T* const at = x + p + t * dilation;
      a = hn::Add(a, hn::Mul(weight, hn::LoadU(d, at)));
      b = hn::Add(b, hn::Mul(weight, hn::LoadU(d, at + lanes)));
      c = hn::Add(c, hn::Mul(weight, hn::LoadU(d, at + 2 * lanes)));
      e = hn::Add(e, hn::Mul(weight, hn::LoadU(d, at + 3 * lanes)));
    }
    hn::StoreU(a, d, y + p), hn::StoreU(b, d, y + p + lanes), hn::StoreU(c, d, y + p + 2 * lanes),
        hn::StoreU(e, d, y + p + 3 * lanes);
  }
  for (; p < n; ++p)
    for (std::int64_t t = 0; t < taps; ++t) y[p] += w[t] * x[p + t * dilation];
}
void AddTapsOfFloats(const float* x, const float* w, std::int64_t taps, std::int64_t dilation, float* y,
                     std::int64_t n) {
  AddTaps(x, w, taps, dilation, y, n);
}
void AddTapsOfDoubles(const double* x, const double* w, std::int64_t taps, std::int64_t dilation, double* y,
                      std::int64_t n) {
  AddTaps(x, w, taps, dilation, y, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddTapsOfFloats);
HWY_EXPORT(AddTapsOfDoubles);

namespace {

constexpr std::int64_t positions_at_once = 4096;  // of a line: fits the L1 cache

template <class T> class Lines {
 public:
  using Add = void (*)(const T*, const T*, std::int64_t, std::int64_t, T*, std::int64_t);

  Lines(const ConvolveShape& shape, const T* x, const T* weights, T* y, Add add)
      : shape_(shape), line_(shape.dims.back()), x_(x), weights_(weights), y_(y), add_(add) {
    for (std::size_t d = 0; d + 1 < shape.dims.size(); ++d) {
      rows_out_ *= shape.dims[d].out;
      rows_in_ *= shape.dims[d].in;
      rows_of_taps_ *= shape.dims[d].taps;
    }
  }

  void run() const {
    const auto pieces = (line_.out + positions_at_once - 1) / positions_at_once;
    constexpr std::int64_t worth_a_thread = 8;
    share(shape_.images * shape_.groups * rows_out_ * pieces, worth_a_thread,
          [&](std::int64_t begin, std::int64_t end) {
            for (auto i = begin; i < end; ++i) compute(i / pieces, i % pieces * positions_at_once);
          });
  }

 private:
  // Positions [first, ...) of one line of the result.
  void compute(std::int64_t line, std::int64_t first) const {
    const auto block = line / rows_out_, group = block % shape_.groups;
    const auto count = std::min(positions_at_once, line_.out - first);
    T* const out = y_ + line * line_.out + first;
    std::fill_n(out, count, T{});
    for (std::int64_t c = 0; c < shape_.channels; ++c)
      for (std::int64_t t = 0; t < rows_of_taps_; ++t) {
        const auto row = row_of(line % rows_out_, t);
        if (row < 0) continue;
        const T* const in = x_ + ((block * shape_.channels + c) * rows_in_ + row) * line_.in;
        const T* const w = weights_ + ((group * shape_.channels + c) * rows_of_taps_ + t) * line_.taps;
        add_line(in, w, out, first, count);
      }
  }

  // The operand line that a line of taps reads for one line of the result; -1 if it is out of bounds.
  std::int64_t row_of(std::int64_t position, std::int64_t tap) const {
    std::int64_t row = 0, stride = 1;
    for (std::size_t d = shape_.dims.size() - 1; d-- > 0;) {
      const auto& dim = shape_.dims[d];
      const auto at = position % dim.out * dim.stride + tap % dim.taps * dim.dilation + dim.first;
      if (at < 0 || at >= dim.in) return -1;
      row += at * stride;
      stride *= dim.in, position /= dim.out, tap /= dim.taps;
    }
    return row;
  }

  // Positions with all taps in bounds use vectors; ends are added singly for few taps, else in groups.
  void add_line(const T* in, const T* w, T* out, std::int64_t first, std::int64_t count) const {
    const auto last_tap = (line_.taps - 1) * line_.dilation;
    const auto inside = std::clamp<std::int64_t>(-line_.first - first, 0, count),
               beyond = std::clamp(line_.in - last_tap - line_.first - first, inside, count);
    add_end(in, w, out, first, inside);
    if (beyond > inside)
      add_(in + first + inside + line_.first, w, line_.taps, line_.dilation, out + inside, beyond - inside);
    add_end(in, w, out + beyond, first + beyond, count - beyond);
  }
  // Adds positions [first, first + count), some of whose taps are out of bounds.
  void add_end(const T* in, const T* w, T* out, std::int64_t first, std::int64_t count) const {
    constexpr std::int64_t many = 16;
    const bool by_groups = line_.taps >= many && count >= group;
    for (std::int64_t p = 0; p < count; p += group) {
      const auto some = std::min(group, count - p);
      if (by_groups && some == group)
        add_group(in, w, out + p, first + p + line_.first);
      else
        for (std::int64_t q = p; q < p + some; ++q) out[q] += at_end(in, w, first + q);
    }
  }
  // Adds, for one group of positions, the taps that are in bounds for at least one of them.
  void add_group(const T* in, const T* w, T* out, std::int64_t at) const {
    const auto step = line_.dilation;
    const auto first_tap = at + group - 1 >= 0 ? std::int64_t{0} : (-(at + group - 1) + step - 1) / step;
    const auto stop_tap =
        at >= line_.in ? std::int64_t{0} : std::min(line_.taps, (line_.in - at + step - 1) / step);
    for (auto tap = first_tap; tap < stop_tap;) {
      const auto begin = at + tap * step;  // first operand position that this tap reads for the group
      const bool is_inside = begin >= 0 && begin + group <= line_.in;
      if (is_inside) {  // true for some of the next taps too
        const auto taps = std::min(stop_tap - tap, (line_.in - group - begin) / step + 1);
        add_(in + begin, w + tap, taps, step, out, group);
        tap += taps;
        continue;
      }
      for (auto i = std::max<std::int64_t>(-begin, 0); i < std::min(group, line_.in - begin); ++i)
        out[i] += w[tap] * in[begin + i];
      ++tap;
    }
  }
  T at_end(const T* in, const T* w, std::int64_t position) const {
    T sum{};
    for (std::int64_t t = 0; t < line_.taps; ++t) {
      const auto at = position + t * line_.dilation + line_.first;
      if (at >= 0 && at < line_.in) sum += w[t] * in[at];
    }
    return sum;
  }

  static constexpr std::int64_t group = 64;
  const ConvolveShape& shape_;
  const ConvolveDim& line_;
  const T *x_, *weights_;
  T* y_;
  Add add_;
  std::int64_t rows_out_ = 1, rows_in_ = 1, rows_of_taps_ = 1;
};

template <class T> void compute_lines(const ConvolveShape& shape, const std::byte* x,
                                      const std::byte* weights, std::byte* y, typename Lines<T>::Add add) {
  Lines<T>(shape, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(weights), reinterpret_cast<T*>(y),
           add)
      .run();
}

}  // namespace

bool goes_by_lines(const ConvolveShape& shape) {
  return shape.features == 1 && (shape.dtype == float32 || shape.dtype == float64) && !shape.dims.empty() &&
         shape.dims.back().stride == 1;
}

void convolve_lines(const ConvolveShape& shape, const std::byte* x, const std::byte* weights, std::byte* y) {
  if (shape.dtype == float32)
    compute_lines<float>(shape, x, weights, y, HWY_DYNAMIC_DISPATCH(AddTapsOfFloats));
  else
    compute_lines<double>(shape, x, weights, y, HWY_DYNAMIC_DISPATCH(AddTapsOfDoubles));
}

}  // namespace tessera::kernels
#endif
