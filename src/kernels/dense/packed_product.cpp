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

// A strip of either operand that deep, and a block of b, fit their caches.
constexpr std::int64_t deepest = 384, block_bytes = 320 << 10;
constexpr std::int64_t rows_at_once = 1024;  // of a, packed: a block of b is packed once for them

// A product and what is done with it. The tile's rows are columns of c: its vectors lie along them.
template <class T> struct PackedTask {
  std::int64_t m, n, k;
  Steps<T> a, b;
  bool accumulate;
  T* c;
  std::int64_t ldc;
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
      : t_(task), depth_(even_part(t_.k, deepest)), columns_(columns_in(depth_)) {
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
  static constexpr std::int64_t rows_of_a_part = 64;  // for the last pass

  // n in parts of at most `most`, none much smaller than the others.
  static std::int64_t even_part(std::int64_t n, std::int64_t most) {
    const auto parts = std::max<std::int64_t>((n + most - 1) / most, 1);
    return std::min(round_up((n + parts - 1) / parts, 16), most);
  }
  static std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
  static std::int64_t columns_in(std::int64_t depth) {
    const auto strip = Shape::rows * depth * static_cast<std::int64_t>(sizeof(T));
    return std::max<std::int64_t>(block_bytes / strip, 1) * Shape::rows;
  }

  void add_depth(std::int64_t i0, std::int64_t rows, std::int64_t l, std::int64_t depth) {
    pack_columns(depth, rows,
                 {t_.a.data + i0 * t_.a.row_step + l * t_.a.column_step, t_.a.column_step, t_.a.row_step},
                 left_);
    for (std::int64_t j0 = 0; j0 < t_.n; j0 += columns_) {
      const std::int64_t columns = std::min(columns_, t_.n - j0);
      pack_rows(columns, depth,
                {t_.b.data + l * t_.b.row_step + j0 * t_.b.column_step, t_.b.column_step, t_.b.row_step},
                right_);
      const bool is_last = l + depth == t_.k && t_.beside.last_pass;
      for (std::int64_t i = 0; i < rows; i += rows_of_a_part) {
        const std::int64_t part = std::min(rows_of_a_part, rows - i);
        if (l == 0 && !t_.accumulate)
          multiply_part(i0, i, part, j0, columns, depth, Sets<T>{});
        else
          multiply_part(i0, i, part, j0, columns, depth, Adds<T>{T(1)});
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
  const std::int64_t depth_, columns_;  // of the inner dim, and of b, at a time
  Buffer room_;
  T *left_, *right_;
};

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
  constexpr std::int64_t more_rows = 8;  // of a strip that is not whole
  return (std::min(m, rows_at_once) + more_rows) * std::min(k, deepest) *
             static_cast<std::int64_t>(itemsize(dtype)) +
         block_bytes;
}

void packed_product(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                    bool accumulate, void* c, std::int64_t ldc, const Beside& beside) {
  const auto task = [&]<class T>(T* to) {
    return PackedTask<T>{m,
                         n,
                         k,
                         {static_cast<const T*>(a.data), a.row_stride, a.column_stride},
                         {static_cast<const T*>(b.data), b.row_stride, b.column_stride},
                         accumulate,
                         to,
                         ldc,
                         beside};
  };
  if (dtype == float32)
    HWY_DYNAMIC_DISPATCH(Product32)(task(static_cast<float*>(c)));
  else
    HWY_DYNAMIC_DISPATCH(Product64)(task(static_cast<double*>(c)));
}

}  // namespace tessera::kernels
#endif
