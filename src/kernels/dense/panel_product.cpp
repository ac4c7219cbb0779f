#include "base/thresholds.hpp"
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/panel_product.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "kernels/dense/product_tile-inl.hpp"

#ifndef TESSERA_PANEL_PRODUCT_TYPES
#define TESSERA_PANEL_PRODUCT_TYPES
namespace tessera::kernels {
namespace {

// One target's functions for a type: packing of rows, and the product with packed rows.
template <class T> struct PanelFunctions {
  std::int64_t strip_rows;
  void (*pack)(std::int64_t rows, std::int64_t depth, Steps<T> a, T* packed);
  void (*multiply)(std::int64_t first_row, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                   T alpha, const T* packed, std::int64_t packed_rows, Steps<T> b, T* c, std::int64_t ldc,
                   std::int64_t diagonal);
};
template <class T> using PanelTable = std::array<PanelFunctions<T>, 1>;

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class T> void multiply(std::int64_t first_row, std::int64_t rows, std::int64_t columns,
                                 std::int64_t depth, T alpha, const T* packed, std::int64_t packed_rows,
                                 Steps<T> b, T* c, std::int64_t ldc, std::int64_t diagonal) {
  using Shape = TileShape<T>;
  constexpr std::int64_t height = Shape::rows, width = Shape::columns, block_bytes = 448 << 10;
  const std::int64_t end_row = std::min(first_row + rows, packed_rows);
  const std::int64_t first_strip = first_row / height, strips = (end_row + height - 1) / height;
  const std::int64_t strip_bytes = height * depth * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t block = std::max<std::int64_t>(block_bytes / std::max<std::int64_t>(strip_bytes, 1), 1);
  constexpr std::int64_t columns_at_once = 512;
  // Contiguous columns that few strips use are read in place.
  const bool in_place = b.row_step == 1 && strips - first_strip <= 6;
  const std::int64_t packed_columns = in_place ? 0 : std::min(columns, columns_at_once);
  Buffer memory = Buffer::allocate(((packed_columns + width) * depth) * sizeof(T) + 64);
  T* right = reinterpret_cast<T*>(memory.data());
  for (std::int64_t j0 = 0; j0 < columns; j0 += columns_at_once) {
    const std::int64_t count = std::min(columns_at_once, columns - j0);
    if (!in_place)
      pack_columns(depth, count, {b.data + j0 * b.column_step, b.row_step, b.column_step}, right);
    const std::int64_t whole = count / width * width;
    if (in_place && whole < count)  // the last few columns
      pack_columns(depth, count - whole, {b.data + (j0 + whole) * b.column_step, b.row_step, b.column_step},
                   right);
    for (std::int64_t s0 = first_strip; s0 < strips; s0 += block)
      for (std::int64_t j = 0; j < count; j += width)
        for (std::int64_t s = s0; s < std::min(s0 + block, strips); ++s) {
          const std::int64_t row = s * height;
          if (row + height <= diagonal + j0 + j) continue;
          const std::int64_t from = std::max<std::int64_t>(first_row - row, 0),
                             to = std::min(end_row - row, height), wide = std::min(width, count - j);
          T* tile = c + (row - first_row) + (j0 + j) * ldc;
          const T* left = packed + s * height * depth;
          if (in_place && wide == width)
            multiply_strip(depth, left, ColumnsInPlace<T>{b.data + (j0 + j) * b.column_step, b.column_step},
                           Adds<T>{alpha}, from, to, wide, tile, ldc);
          else
            multiply_strip(depth, left, PackedStrip<T>{right + (in_place ? 0 : j * depth)}, Adds<T>{alpha},
                           from, to, wide, tile, ldc);
        }
  }
}

template <class T> void fill(PanelTable<T>& table) {
  table[0] = {TileShape<T>::rows, pack_rows<T>, multiply<T>};
}
void FillPanel32(PanelTable<float>& table) { fill(table); }
void FillPanel64(PanelTable<double>& table) { fill(table); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/dense/gemm.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/parallel.hpp"
namespace tessera::kernels {
HWY_EXPORT(FillPanel32);
HWY_EXPORT(FillPanel64);
namespace {

template <class T> const PanelFunctions<T>& functions() {
  static const PanelTable<T> table = [] {
    PanelTable<T> filling{};
    if constexpr (sizeof(T) == 4)
      HWY_DYNAMIC_DISPATCH(FillPanel32)(filling);
    else
      HWY_DYNAMIC_DISPATCH(FillPanel64)(filling);
    return filling;
  }();
  return table[0];
}

// BLAS cannot conjugate without transposing: operands in a form it does not support are copied.
template <class T> void blas_product(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Steps<T> a,
                                     Steps<T> b, T beta, T* c, std::int64_t ldc) {
  const auto readable = [](Steps<T>& x, std::int64_t rows, std::int64_t columns, Buffer& copy) {
    const bool plain = x.row_step == 1 && (x.column_step >= rows || columns <= 1),
               turned = x.column_step == 1;
    if (plain && !x.conjugate) return 'N';
    if (turned && !plain) return x.conjugate ? 'C' : 'T';
    copy = Buffer::allocate((rows * columns) * sizeof(T) + 1);
    T* to = reinterpret_cast<T*>(copy.data());
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i) {
        to[i + j * rows] = x.data[i * x.row_step + j * x.column_step];
        if constexpr (complex_type<T>)
          if (x.conjugate) to[i + j * rows] = std::conj(to[i + j * rows]);
      }
    x = {to, 1, rows};
    return 'N';
  };
  Buffer a_copy, b_copy;
  const char trans_a = readable(a, m, k, a_copy), trans_b = readable(b, k, n, b_copy);
  const auto ld = [](char trans, const Steps<T>& x) {
    return static_cast<int>(std::max<std::int64_t>(trans == 'N' ? x.column_step : x.row_step, 1));
  };
  lapack::gemm<T>(trans_a, trans_b, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha,
                  a.data, ld(trans_a, a), b.data, ld(trans_b, b), beta, c, static_cast<int>(ldc));
}

// alpha is 1 or -1. Each element's terms are added one after the other.
template <class T> void ordered_complex(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Steps<T> a,
                                        Steps<T> b, bool accumulate, T* c, std::int64_t ldc) {
  const auto plain = [](Steps<T>& x, std::int64_t rows, std::int64_t columns) {
    std::vector<T> copy;
    if (!x.conjugate) return copy;
    copy.resize(static_cast<std::size_t>(rows * columns));
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        copy[static_cast<std::size_t>(i + j * rows)] = std::conj(x.data[i * x.row_step + j * x.column_step]);
    x = {copy.data(), 1, rows};
    return copy;
  };
  const auto a_copy = plain(a, m, k), b_copy = plain(b, k, n);
  std::vector<T> sums(static_cast<std::size_t>(m * n));  // row-major, transposed
  ordered_product({dtype_of<T>(),
                   n,
                   m,
                   k,
                   {b.data, b.column_step, b.row_step},
                   {a.data, a.column_step, a.row_step},
                   false,
                   sums.data(),
                   m});
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      const T sum = alpha == T(1) ? sums[static_cast<std::size_t>(j * m + i)]
                                  : -sums[static_cast<std::size_t>(j * m + i)];
      c[i + j * ldc] = accumulate ? c[i + j * ldc] + sum : sum;
    }
}

// multiply() on all threads: each has a range of columns in whole tiles, so that every element is summed as
// on one thread.
template <class T> void multiply_by_all(std::int64_t first_row, std::int64_t rows, std::int64_t columns,
                                        std::int64_t depth, T alpha, const T* packed,
                                        std::int64_t packed_rows, Steps<T> b, T* c, std::int64_t ldc,
                                        std::int64_t diagonal) {
  constexpr std::int64_t whole_tiles = 8, worthwhile = std::int64_t{1} << 19;  // multiplications
  const std::int64_t least = threshold(worthwhile) / std::max<std::int64_t>(rows * depth, 1);
  share(columns, std::max<std::int64_t>(least, 1), whole_tiles, [&](std::int64_t begin, std::int64_t end) {
    functions<T>().multiply(first_row, rows, end - begin, depth, alpha, packed, packed_rows,
                            {b.data + begin * b.column_step, b.row_step, b.column_step}, c + begin * ldc, ldc,
                            diagonal + begin);
  });
}

// pack() on all threads: each has a range of strips.
template <class T> void pack_by_all(std::int64_t rows, std::int64_t depth, Steps<T> a, T* packed) {
  const auto& f = functions<T>();
  share(rows, worth_a_thread(depth * static_cast<std::int64_t>(sizeof(T))), f.strip_rows,
        [&](std::int64_t begin, std::int64_t end) {
          f.pack(end - begin, depth, {a.data + begin * a.row_step, a.row_step, a.column_step},
                 packed + begin * depth);
        });
}

// The depth at which a block of packed rows stays in the second-level cache.
constexpr std::int64_t deepest = 256;

template <class T> std::int64_t whole_strips(std::int64_t rows) {
  const std::int64_t strip = functions<T>().strip_rows;
  return (rows + strip - 1) / strip * strip;
}

}  // namespace

template <class T>
void PackedPanel<T>::pack(std::int64_t rows, std::int64_t depth, Steps<T> a, SumOrder order) {
  rows_ = rows, depth_ = depth, order_ = order;
  std::int64_t padded = rows;
  if constexpr (!complex_type<T>) padded = whole_strips<T>(rows);
  const auto bytes = (padded * depth) * sizeof(T) + 64;
  if (values_.bytes() < bytes) values_ = Buffer(), values_ = Buffer::allocate(bytes);
  T* packed = reinterpret_cast<T*>(values_.data());
  if constexpr (complex_type<T>) {
    for (std::int64_t l = 0; l < depth; ++l)
      for (std::int64_t i = 0; i < rows; ++i) {
        const T value = a.data[i * a.row_step + l * a.column_step];
        packed[i + l * rows] = a.conjugate ? std::conj(value) : value;
      }
  } else
    for (std::int64_t l = 0; l < depth; l += deepest)
      pack_by_all<T>(rows, std::min(deepest, depth - l),
                     {a.data + l * a.column_step, a.row_step, a.column_step}, packed + padded * l);
}

template <class T> void PackedPanel<T>::add(T alpha, std::int64_t first_row, std::int64_t rows,
                                            std::int64_t columns, Steps<T> b, T* c, std::int64_t ldc,
                                            std::int64_t diagonal) const {
  if (rows <= 0 || columns <= 0) return;
  const T* packed = reinterpret_cast<const T*>(values_.data());
  if constexpr (complex_type<T>) {
    const Steps<T> a{packed + first_row, 1, rows_};
    if (order_ == SumOrder::fixed)
      return ordered_complex<T>(rows, columns, depth_, alpha, a, b, true, c, ldc);
    blas_product<T>(rows, columns, depth_, alpha, a, b, T(1), c, ldc);
  } else
    for (std::int64_t l = 0; l < depth_; l += deepest)
      multiply_by_all<T>(first_row, rows, columns, std::min(deepest, depth_ - l), alpha,
                         packed + whole_strips<T>(rows_) * l, rows_,
                         {b.data + l * b.row_step, b.row_step, b.column_step}, c, ldc, diagonal);
}

template <class T>
void PackedPanel<T>::product(std::int64_t columns, Steps<T> b, T* c, std::int64_t ldc) const {
  for (std::int64_t j = 0; j < columns; ++j) std::fill(c + j * ldc, c + j * ldc + rows_, T(0));
  add(T(1), 0, rows_, columns, b, c, ldc, no_diagonal);
}

template <class T> void PackedPanel<T>::subtract_product(std::int64_t first_row, std::int64_t rows,
                                                         std::int64_t columns, Steps<T> b, T* c,
                                                         std::int64_t ldc, std::int64_t diagonal) const {
  add(T(-1), first_row, rows, columns, b, c, ldc, diagonal);
}

template <class T> void product(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Steps<T> a,
                                Steps<T> b, bool accumulate, T* c, std::int64_t ldc, SumOrder order) {
  if (m <= 0 || n <= 0) return;
  if constexpr (complex_type<T>)
    if (order == SumOrder::fixed) return ordered_complex<T>(m, n, k, alpha, a, b, accumulate, c, ldc);
  if constexpr (complex_type<T>) return blas_product<T>(m, n, k, alpha, a, b, T(accumulate ? 1 : 0), c, ldc);
  if (!accumulate)
    for (std::int64_t j = 0; j < n; ++j) std::fill(c + j * ldc, c + j * ldc + m, T(0));
  if constexpr (!complex_type<T>) {
    const auto& f = functions<T>();
    Buffer memory = Buffer::allocate(((m + f.strip_rows) * std::min(k, deepest)) * sizeof(T) + 64);
    T* packed = reinterpret_cast<T*>(memory.data());
    for (std::int64_t l = 0; l < k; l += deepest) {
      const std::int64_t depth = std::min(deepest, k - l);
      pack_by_all<T>(m, depth, {a.data + l * a.column_step, a.row_step, a.column_step}, packed);
      multiply_by_all<T>(0, m, n, depth, alpha, packed, m,
                         {b.data + l * b.row_step, b.row_step, b.column_step}, c, ldc,
                         PackedPanel<T>::no_diagonal);
    }
  }
}

#define TESSERA_INSTANTIATE(T)                                                                        \
  template class PackedPanel<T>;                                                                      \
  template void product<T>(std::int64_t, std::int64_t, std::int64_t, T, Steps<T>, Steps<T>, bool, T*, \
                           std::int64_t, SumOrder);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
#endif
