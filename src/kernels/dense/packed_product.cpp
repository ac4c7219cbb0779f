#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/packed_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dense/packed_product.hpp"
#include "kernels/dense/product_tile-inl.hpp"
#include "types/buffer.hpp"

#ifndef TESSERA_PACKED_PRODUCT_TYPES
#define TESSERA_PACKED_PRODUCT_TYPES
namespace tessera::kernels {
namespace {

// The depth at which a strip of either operand, and a block of b, fit their caches.
constexpr std::int64_t block_bytes = 320 << 10;
constexpr std::int64_t rows_at_once = 1024;  // packed rows of a that share each packed block of b

// A product and its epilogue. Tile rows are columns of c, because vectors run along the columns.
template <class T> struct PackedTask {
  std::int64_t m, n, k;
  Steps<T> a, b;
  bool accumulate;
  T* c;
  std::int64_t ldc;
  bool is_lower;
  std::int64_t diagonal;
  const Beside& beside;
};

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class T> class Packed {
 public:
  explicit Packed(const PackedTask<T>& task)
      : t_(task), depth_(product_depth(t_.k)), columns_(columns_in(depth_)) {
    const auto left_items = round_up(std::min(rows_at_once, t_.m), Shape::columns) * depth_,
               right_items = round_up(std::min(columns_, t_.n), Shape::rows) * depth_;
    room_ = Buffer::allocate(static_cast<std::size_t>(left_items + right_items) * sizeof(T));
    right_ = reinterpret_cast<T*>(room_.data());
    left_ = right_ + right_items;
  }

  void run() {
    for (std::int64_t i = 0; i < t_.m; i += rows_at_once)
      for (std::int64_t l = 0; l < t_.k; l += depth_)
        add_depth(i, std::min(rows_at_once, t_.m - i), l, std::min(depth_, t_.k - l));
  }

 private:
  using Shape = TileShape<T>;
  static constexpr std::int64_t rows_of_a_part = 64;  // passed to last_pass at a time

  static std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
  static std::int64_t columns_in(std::int64_t depth) {
    const auto strip = Shape::rows * depth * static_cast<std::int64_t>(sizeof(T));
    return std::max<std::int64_t>(block_bytes / strip, 1) * Shape::rows;
  }

  // The wanted ones of the columns from j0 on in the rows that end at `stop`.
  std::int64_t columns_wanted(std::int64_t stop, std::int64_t j0) const {
    const auto end = t_.is_lower ? std::min(t_.n, stop + t_.diagonal) : t_.n;
    return std::min(columns_, end - j0);
  }
  void add_depth(std::int64_t i0, std::int64_t rows, std::int64_t l, std::int64_t depth) {
    pack_columns(depth, rows,
                 {t_.a.data + i0 * t_.a.row_step + l * t_.a.column_step, t_.a.column_step, t_.a.row_step},
                 left_);
    for (std::int64_t j0 = 0; columns_wanted(i0 + rows, j0) > 0; j0 += columns_) {
      const std::int64_t columns = columns_wanted(i0 + rows, j0);
      pack_rows(columns, depth,
                {t_.b.data + l * t_.b.row_step + j0 * t_.b.column_step, t_.b.column_step, t_.b.row_step},
                right_);
      const bool is_last = l + depth == t_.k && t_.beside.last_pass;
      for (std::int64_t i = 0; i < rows; i += rows_of_a_part) {
        const std::int64_t part = std::min(rows_of_a_part, rows - i);
        const std::int64_t wanted = columns_wanted(i0 + i + part, j0);
        if (l == 0 && !t_.accumulate)
          multiply_part(i0, i, part, j0, wanted, depth, Sets<T>{});
        else
          multiply_part(i0, i, part, j0, wanted, depth, Adds<T>{T(1)});
        if (is_last) t_.beside.last_pass(i0 + i, part, j0, columns);
      }
      if (t_.beside.meanwhile) t_.beside.meanwhile();
    }
  }

  template <class Store> void multiply_part(std::int64_t i0, std::int64_t first, std::int64_t rows,
                                            std::int64_t j0, std::int64_t columns, std::int64_t depth,
                                            const Store store) {
    for (std::int64_t i = first; i < first + rows; i += Shape::columns)
      for (std::int64_t j = 0; j < columns; j += Shape::rows)
        multiply_strip(depth, right_ + j * depth, PackedStrip<T>{left_ + i * depth}, store, 0,
                       std::min(Shape::rows, columns - j), std::min(Shape::columns, first + rows - i),
                       t_.c + (i0 + i) * t_.ldc + j0 + j, t_.ldc);
  }

  const PackedTask<T>& t_;
  const std::int64_t depth_, columns_;  // packed at a time: depth, and columns of b
  Buffer room_;
  T *left_, *right_;
};

// The same sums without packing, for products too small to be worth it.
template <class T> class Plain {
 public:
  explicit Plain(const PackedTask<T>& task) : t_(task), depth_(product_depth(t_.k)) {}

  void run() {
    for (std::int64_t i = 0; i < t_.m; ++i)
      for (std::int64_t j = 0; j < t_.n; j += width)
        for (std::int64_t l = 0; l < t_.k; l += depth_)
          add_depth(i, j, std::min(width, t_.n - j), l, std::min(depth_, t_.k - l));
  }

 private:
  static constexpr std::int64_t width = 64;
  static HWY_INLINE T mul_add(T a, T b, T c) {
#if HWY_NATIVE_FMA
    if constexpr (sizeof(T) == 4)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
  }

  void add_depth(std::int64_t i, std::int64_t j, std::int64_t columns, std::int64_t l, std::int64_t depth) {
    T sum[width] = {};
    for (std::int64_t d = l; d < l + depth; ++d) {
      const T left = t_.a.data[i * t_.a.row_step + d * t_.a.column_step];
      const T* const row = t_.b.data + d * t_.b.row_step + j * t_.b.column_step;
      if (t_.b.column_step == 1)
        for (std::int64_t c = 0; c < columns; ++c) sum[c] = mul_add(row[c], left, sum[c]);
      else
        for (std::int64_t c = 0; c < columns; ++c) sum[c] = mul_add(row[c * t_.b.column_step], left, sum[c]);
    }
    T* const to = t_.c + i * t_.ldc + j;
    if (l == 0 && !t_.accumulate)
      std::copy_n(sum, columns, to);
    else
      for (std::int64_t c = 0; c < columns; ++c) to[c] = sum[c] + to[c];
  }

  const PackedTask<T>& t_;
  const std::int64_t depth_;
};

void Plain32(const PackedTask<float>& task) { Plain<float>(task).run(); }
void Plain64(const PackedTask<double>& task) { Plain<double>(task).run(); }
void Product32(const PackedTask<float>& task) { Packed<float>(task).run(); }
void Product64(const PackedTask<double>& task) { Packed<double>(task).run(); }
bool IsWide() { return HWY_TARGET <= HWY_AVX3; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(Product32);
HWY_EXPORT(Product64);
HWY_EXPORT(Plain32);
HWY_EXPORT(Plain64);
HWY_EXPORT(IsWide);

bool has_packed_product(Dtype dtype) {
  return (dtype == float64 || dtype == float32) && HWY_DYNAMIC_DISPATCH(IsWide)();
}

bool worth_packing(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr double small = 1e6;  // BLAS has kernels that do not pack
  const double multiplications = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (m < 48 || n < 16 || k < 32 || multiplications <= small) return false;
  return dtype == float64 || (k >= 256 && multiplications >= 16 * small);
}

std::int64_t packing_bytes(Dtype dtype, std::int64_t m, std::int64_t k) {
  constexpr std::int64_t more_rows = 8;  // rows added to fill a strip
  return (std::min(m, rows_at_once) + more_rows) * product_depth(k) *
             static_cast<std::int64_t>(itemsize(dtype)) +
         block_bytes;
}

namespace {
template <class T> PackedTask<T> task_of(const StridedProduct& p, const Beside& beside) {
  return {p.m,
          p.n,
          p.k,
          {static_cast<const T*>(p.a.data), p.a.row_stride, p.a.column_stride},
          {static_cast<const T*>(p.b.data), p.b.row_stride, p.b.column_stride},
          p.accumulate,
          static_cast<T*>(p.c),
          p.ldc,
          p.is_lower,
          p.diagonal,
          beside};
}
}  // namespace

void plain_product(const StridedProduct& p) {
  const Beside nothing;
  if (p.dtype == float32)
    HWY_DYNAMIC_DISPATCH(Plain32)(task_of<float>(p, nothing));
  else
    HWY_DYNAMIC_DISPATCH(Plain64)(task_of<double>(p, nothing));
}

void packed_product(const StridedProduct& p, const Beside& beside) {
  if (p.dtype == float32)
    HWY_DYNAMIC_DISPATCH(Product32)(task_of<float>(p, beside));
  else
    HWY_DYNAMIC_DISPATCH(Product64)(task_of<double>(p, beside));
}

}  // namespace tessera::kernels
#endif
