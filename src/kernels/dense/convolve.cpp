#include "kernels/dense/convolve.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/dense/convolve_fourier.hpp"
#include "kernels/dense/convolve_lines.hpp"
#include "kernels/dense/convolve_tiles.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t most_patch_bytes = std::int64_t{4} << 20;
// The number of positions that an ordered sum adds at a time. It does not depend on the channels, whose
// number may differ between ranks.
constexpr std::int64_t positions_in_order = 1024;

template <class T> class Patches {
 public:
  Patches(const ConvolveShape& shape) : dims_(shape.dims), channels_(shape.channels) {
    for (const auto& d : dims_) in_size_ *= d.in, taps_ *= d.taps, out_size_ *= d.out;
    row_out_ = dims_.empty() ? 1 : out_size_ / std::max<std::int64_t>(dims_[0].out, 1);
    const auto row_bytes =
        std::max<std::int64_t>(1, depth() * row_out_ * static_cast<std::int64_t>(sizeof(T)));
    const auto rows_that_fit = shape.is_ordered ? positions_in_order / std::max<std::int64_t>(row_out_, 1)
                                                : most_patch_bytes / row_bytes;
    rows_at_once_ = std::clamp<std::int64_t>(rows_that_fit, 1, std::max<std::int64_t>(rows(), 1));
    columns_.reset(new T[depth() * rows_at_once_ * row_out_]);
  }

  std::int64_t depth() const { return channels_ * taps_; }  // rows of the matrix: one per channel and tap
  std::int64_t rows() const { return dims_.empty() ? 1 : dims_[0].out; }  // outermost output positions
  std::int64_t rows_at_once() const { return rows_at_once_; }
  std::int64_t row_out() const { return row_out_; }
  std::int64_t in_size() const { return in_size_; }
  std::int64_t out_size() const { return out_size_; }

  // The patch matrix (channels * taps, positions) for output rows [begin, end).
  const T* of(const T* x, std::int64_t begin, std::int64_t end) {
    T* out = columns_.get();
    std::vector<std::int64_t> tap(dims_.size(), 0);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const T* channel = x + c * in_size_;
      for (std::int64_t t = 0; t < taps_; ++t) {
        fill(channel, 0, tap, begin, end, out);
        for (std::size_t d = dims_.size(); d-- > 0;) {
          if (++tap[d] < dims_[d].taps) break;
          tap[d] = 0;
        }
      }
    }
    return columns_.get();
  }

 private:
  // Fills the row of one tap for the output positions of dims d and above; `at` is the operand at position 0
  // of these dims.
  void fill(const T* at, std::size_t d, const std::vector<std::int64_t>& tap, std::int64_t begin,
            std::int64_t end, T*& out) const {
    if (d == dims_.size()) {
      *out++ = *at;
      return;
    }
    const auto& dim = dims_[d];
    std::int64_t stride_in = 1, inner_out = 1;
    for (std::size_t k = d + 1; k < dims_.size(); ++k) stride_in *= dims_[k].in, inner_out *= dims_[k].out;
    const auto first = dim.first + tap[d] * dim.dilation;
    if (d + 1 == dims_.size()) return fill_line(at, dim, first, begin, end, out);
    for (auto p = begin; p < end; ++p) {
      const auto i = p * dim.stride + first;
      if (i < 0 || i >= dim.in) {
        std::fill_n(out, inner_out, T{});
        out += inner_out;
      } else {
        fill(at + i * stride_in, d + 1, tap, 0, dims_[d + 1].out, out);
      }
    }
  }

  static void fill_line(const T* at, const ConvolveDim& dim, std::int64_t first, std::int64_t begin,
                        std::int64_t end, T*& out) {
    // Output positions whose operand position is in bounds: [inside, beyond).
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return a <= 0 ? -(-a / b) : (a + b - 1) / b; };
    const auto inside = std::clamp(ceil_div(-first, dim.stride), begin, end);
    const auto beyond = std::clamp(ceil_div(dim.in - first, dim.stride), inside, end);
    out = std::fill_n(out, inside - begin, T{});
    if (dim.stride == 1)
      out = std::copy_n(at + inside + first, beyond - inside, out);
    else
      for (auto p = inside; p < beyond; ++p) *out++ = at[p * dim.stride + first];
    out = std::fill_n(out, end - beyond, T{});
  }

  const std::vector<ConvolveDim>& dims_;
  std::int64_t channels_, in_size_ = 1, out_size_ = 1, taps_ = 1, row_out_ = 1, rows_at_once_ = 1;
  std::unique_ptr<T[]> columns_;
};

// Calls use(image and group number, matrix of patches, first position, number of positions).
template <class T, class Use> void for_each_patch_matrix(const ConvolveShape& shape, const T* x, Use use) {
  Patches<T> patches(shape);
  for (std::int64_t block = 0; block < shape.images * shape.groups; ++block) {
    const T* operand = x + block * shape.channels * patches.in_size();
    for (std::int64_t row = 0; row < patches.rows(); row += patches.rows_at_once()) {
      const auto end = std::min(patches.rows(), row + patches.rows_at_once());
      use(block, patches.of(operand, row, end), row * patches.row_out(), (end - row) * patches.row_out(),
          patches);
    }
  }
}

// a is not transposed.
void multiply(const MatrixProduct& p, bool is_ordered) {
  if (!is_ordered) return gemm(p);
  const MatrixView right = p.b.transposed ? MatrixView{p.b.data, 1, p.b.ld} : MatrixView{p.b.data, p.b.ld, 1};
  ordered_product({p.dtype, p.m, p.n, p.k, {p.a.data, p.a.ld, 1}, right, p.accumulate, p.c, p.ldc});
}

// The shape of the same sums, with taps as positions and channels as images.
ConvolveShape with_taps_as_positions(const ConvolveShape& shape) {
  ConvolveShape result{shape.dtype, shape.channels, 1, shape.images, shape.features, shape.dims};
  for (auto& d : result.dims) std::swap(d.out, d.taps), std::swap(d.stride, d.dilation);
  return result;
}

// For the derivative by weights, which written as a convolution has many taps and few positions: computes it
// with taps and positions exchanged. Returns false if the shape is not of this kind, or a sum is not finite.
bool convolve_many_taps(const ConvolveShape& shape, const std::byte* x, const std::byte* weights,
                        std::byte* y) {
  std::int64_t taps = 1, out = 1;
  for (const auto& d : shape.dims) taps *= d.taps, out *= d.out;
  if (shape.groups != 1 || taps < 4 * out) return false;
  const ConvolveShape other = with_taps_as_positions(shape);
  if (!goes_by_tiles(other)) return false;
  const auto item = itemsize(shape.dtype);
  const auto result = shape.features * shape.images * out;
  const std::unique_ptr<std::byte[]> turned(new std::byte[static_cast<std::size_t>(result) * item]());
  if (!convolve_weights_tiles(other, x, weights, turned.get(), ImageOrder::inner)) return false;
  transpose(y, turned.get(), Shape{shape.features, shape.images, out}, std::array{1, 0, 2}, item);
  return true;
}

}  // namespace

void convolve(const ConvolveShape& shape, const std::byte* x, const std::byte* weights, std::byte* y) {
  if (goes_by_fourier(shape) && !shape.is_ordered) return convolve_fourier(shape, x, weights, y);
  if (goes_by_lines(shape) && !shape.is_ordered) return convolve_lines(shape, x, weights, y);
  if (goes_by_tiles(shape)) return convolve_tiles(shape, x, weights, y);
  if (!shape.is_ordered && convolve_many_taps(shape, x, weights, y)) return;
  visit(shape.dtype, [&]<class T>(T) {
    const T* w = reinterpret_cast<const T*>(weights);
    T* out = reinterpret_cast<T*>(y);
    for_each_patch_matrix(shape, reinterpret_cast<const T*>(x),
                          [&](std::int64_t block, const T* columns, std::int64_t first, std::int64_t count,
                              const Patches<T>& patches) {
                            if (count == 0 || shape.features == 0) return;
                            T* const target = out + block * shape.features * patches.out_size() + first;
                            const auto group = block % shape.groups;
                            if (patches.depth() == 0) {
                              for (std::int64_t f = 0; f < shape.features; ++f)
                                std::fill_n(target + f * patches.out_size(), count, T{});
                              return;
                            }
                            multiply({shape.dtype,
                                      shape.features,
                                      count,
                                      patches.depth(),
                                      {w + group * shape.features * patches.depth(), patches.depth()},
                                      {columns, count},
                                      target,
                                      patches.out_size()},
                                     shape.is_ordered);
                          });
  });
}

void convolve_weights(const ConvolveShape& shape, const std::byte* x, const std::byte* y,
                      std::byte* weights) {
  visit(shape.dtype, [&]<class T>(T) {
    T* w = reinterpret_cast<T*>(weights);
    std::int64_t taps = 1;
    for (const auto& d : shape.dims) taps *= d.taps;
    const auto depth = shape.channels * taps;
    std::fill_n(w, shape.groups * shape.features * depth, T{});
    if (shape.features == 0 || depth == 0) return;
    if (goes_by_tiles(shape)) {
      if (convolve_weights_tiles(shape, x, y, weights)) return;
      std::fill_n(w, shape.groups * shape.features * depth, T{});
    }
    for_each_patch_matrix(shape, reinterpret_cast<const T*>(x),
                          [&](std::int64_t block, const T* columns, std::int64_t first, std::int64_t count,
                              const Patches<T>& patches) {
                            if (count == 0) return;
                            const T* const source = reinterpret_cast<const T*>(y) +
                                                    block * shape.features * patches.out_size() + first;
                            multiply({shape.dtype,
                                      shape.features,
                                      depth,
                                      count,
                                      {source, patches.out_size()},
                                      {columns, count, true},
                                      w + block % shape.groups * shape.features * depth,
                                      depth,
                                      true},
                                     shape.is_ordered);
                          });
  });
}

}  // namespace tessera::kernels
