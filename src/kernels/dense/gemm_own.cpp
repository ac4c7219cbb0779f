// c[i, :] += a[i, l] * b[l, :], four rows of b at a time, over panels of b that fit the second-level cache.
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense/gemm_own.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>
#include <vector>

#include "kernels/dense/gemm_own.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

using GemmFn = void (*)(std::int64_t, std::int64_t, std::int64_t, MatrixView, MatrixView, void*,
                        std::int64_t);
using GemmTable = std::array<GemmFn, dtype_count>;
using SmallFn = void (*)(const SmallProducts&);
using SmallTable = std::array<SmallFn, dtype_count>;

// Integers wrap: unsigned and at least as wide as int. Bool: or of ands.
template <class T> struct Arithmetic {
  static HWY_INLINE T add_product(T c, T a, T b) {
    if constexpr (std::is_integral_v<T> && sizeof(T) < 4)
      return static_cast<T>(c + static_cast<std::uint32_t>(a) * b);
    else
      return c + a * b;
  }
};
struct Truth {
  std::uint8_t value;
};
template <> struct Arithmetic<Truth> {
  static HWY_INLINE Truth add_product(Truth c, Truth a, Truth b) {
    return {static_cast<std::uint8_t>(c.value | (a.value & b.value))};
  }
};
// The real part is written as a sum, not a difference: GCC contracts a difference beside a sum to fused
// multiply-adds even with contraction off, and the bits would depend on the instruction set.
template <class R> struct Arithmetic<std::complex<R>> {
  using C = std::complex<R>;
  static HWY_INLINE C add_product(C c, C a, C b) {
    return C(c.real() + (a.real() * b.real() + -a.imag() * b.imag()),
             c.imag() + (a.real() * b.imag() + a.imag() * b.real()));
  }
};

// b: depth rows of `columns` contiguous elements.
template <class T> HWY_INLINE void add_rows(const T* a, std::int64_t a_stride, const T* b, std::int64_t ldb,
                                            std::int64_t depth, std::int64_t columns, T* HWY_RESTRICT c) {
  using A = Arithmetic<T>;
  std::int64_t l = 0;
  for (; l + 4 <= depth; l += 4) {
    const T a0 = a[l * a_stride], a1 = a[(l + 1) * a_stride], a2 = a[(l + 2) * a_stride],
            a3 = a[(l + 3) * a_stride];
    const T *b0 = b + l * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
    for (std::int64_t j = 0; j < columns; ++j)
      c[j] = A::add_product(
          A::add_product(A::add_product(A::add_product(c[j], a0, b0[j]), a1, b1[j]), a2, b2[j]), a3, b3[j]);
  }
  for (; l < depth; ++l) {
    const T a0 = a[l * a_stride];
    const T* b0 = b + l * ldb;
    for (std::int64_t j = 0; j < columns; ++j) c[j] = A::add_product(c[j], a0, b0[j]);
  }
}

// Few columns of integers, whose sums may be added in any order: lines of a times lines of b.
constexpr std::int64_t few_columns = 4;
template <class T>
HWY_INLINE T product_of_lines(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::int64_t k, T c) {
  for (std::int64_t l = 0; l < k; ++l) c = Arithmetic<T>::add_product(c, a[l], b[l]);
  return c;
}
// b: its columns, k elements each.
template <class T> void multiply_lines(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                                       std::int64_t a_stride, const T* b, T* c, std::int64_t ldc) {
  const auto multiply = [&](auto length) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        c[i * ldc + j] = product_of_lines<T>(a + i * a_stride, b + j * length, length, c[i * ldc + j]);
  };
  if (k == 2) return multiply(std::integral_constant<std::int64_t, 2>());
  if (k == 3) return multiply(std::integral_constant<std::int64_t, 3>());
  if (k == 4) return multiply(std::integral_constant<std::int64_t, 4>());
  multiply(k);
}
template <class T> void gemm_of_few_columns(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a,
                                            MatrixView b, T* c, std::int64_t ldc) {
  constexpr std::int64_t most = 1024;  // the lines of b stay in the first-level cache
  T lines[few_columns * most];
  const T *a_data = static_cast<const T*>(a.data), *b_data = static_cast<const T*>(b.data);
  for (std::int64_t first = 0; first < k; first += most) {
    const std::int64_t depth = std::min(most, k - first);
    const T* const from = b_data + first * b.row_stride;
    for (std::int64_t l = 0; l < depth; ++l)
      for (std::int64_t j = 0; j < n; ++j)
        lines[j * depth + l] = from[l * b.row_stride + j * b.column_stride];
    multiply_lines(m, n, depth, a_data + first, a.row_stride, lines, c, ldc);
  }
}

template <class T> void gemm_typed(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                                   void* c_out, std::int64_t ldc) {
  constexpr std::int64_t panel_rows = 128, panel_columns = 2048 / static_cast<std::int64_t>(sizeof(T));
  const T* a_data = static_cast<const T*>(a.data);
  const T* b_data = static_cast<const T*>(b.data);
  T* c = static_cast<T*>(c_out);
  if constexpr (std::is_integral_v<T>) {
    if (n <= few_columns && a.column_stride == 1) return gemm_of_few_columns(m, n, k, a, b, c, ldc);
  }
  std::vector<T> panel;
  const bool pack = b.column_stride != 1;
  if (pack) panel.resize(std::min(panel_rows, k) * std::min(panel_columns, n));
  for (std::int64_t j = 0; j < n; j += panel_columns) {
    const std::int64_t columns = std::min(panel_columns, n - j);
    for (std::int64_t l = 0; l < k; l += panel_rows) {
      const std::int64_t depth = std::min(panel_rows, k - l);
      const T* b_panel = b_data + l * b.row_stride + j * b.column_stride;
      std::int64_t ldb = b.row_stride;
      if (pack) {
        for (std::int64_t column = 0; column < columns; ++column)
          for (std::int64_t row = 0; row < depth; ++row)
            panel[row * columns + column] = b_panel[row * b.row_stride + column * b.column_stride];
        b_panel = panel.data();
        ldb = columns;
      }
      for (std::int64_t i = 0; i < m; ++i)
        add_rows(a_data + i * a.row_stride + l * a.column_stride, a.column_stride, b_panel, ldb, depth,
                 columns, c + i * ldc + j);
    }
  }
}

// Square matrices have constants for all extents, so that one product has no loop.
template <class T, int columns> void multiply_small(const SmallProducts& p) {
  using A = Arithmetic<T>;
  const auto multiply = [&](auto rows, auto depth) {
    const T *a = static_cast<const T*>(p.a), *b = static_cast<const T*>(p.b);
    T* c = static_cast<T*>(p.c);
    for (std::int64_t i = 0; i < p.batch; ++i, a += p.a_stride, b += p.b_stride)
      for (std::int64_t r = 0; r < rows; ++r, c += columns) {
        T sums[columns]{};
        for (std::int64_t l = 0; l < depth; ++l)
          for (int j = 0; j < columns; ++j)
            sums[j] = A::add_product(sums[j], a[r * depth + l], b[l * columns + j]);
        std::copy_n(sums, columns, c);
      }
  };
  constexpr std::integral_constant<std::int64_t, columns> side;
  if (p.m == columns && p.k == columns)
    multiply(side, side);
  else
    multiply(p.m, p.k);
}
template <class T> void multiply_small_typed(const SmallProducts& p) {
  static constexpr SmallFn by_columns[] = {multiply_small<T, 1>, multiply_small<T, 2>, multiply_small<T, 3>,
                                           multiply_small<T, 4>};
  by_columns[p.n - 1](p);
}
void FillSmallTable(SmallTable& table) {
  table[float32.code] = multiply_small_typed<float>;
  table[float64.code] = multiply_small_typed<double>;
  table[complex64.code] = multiply_small_typed<std::complex<float>>;
  table[complex128.code] = multiply_small_typed<std::complex<double>>;
}

void FillGemmTable(GemmTable& table) {
  table = {gemm_typed<Truth>,
           gemm_typed<std::uint8_t>,
           gemm_typed<std::uint16_t>,
           gemm_typed<std::uint32_t>,
           gemm_typed<std::uint64_t>,
           gemm_typed<std::uint8_t>,
           gemm_typed<std::uint16_t>,
           gemm_typed<std::uint32_t>,
           gemm_typed<std::uint64_t>,
           gemm_typed<float>,
           gemm_typed<double>,
           gemm_typed<std::complex<float>>,
           gemm_typed<std::complex<double>>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(FillGemmTable);
HWY_EXPORT(FillSmallTable);

void gemm_own(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
              void* c, std::int64_t ldc) {
  using GemmFn =
      void (*)(std::int64_t, std::int64_t, std::int64_t, MatrixView, MatrixView, void*, std::int64_t);
  static const auto table = [] {
    std::array<GemmFn, dtype_count> filling{};
    HWY_DYNAMIC_DISPATCH(FillGemmTable)(filling);
    return filling;
  }();
  table[dtype.code](m, n, k, a, b, c, ldc);
}

void multiply_small(Dtype dtype, const SmallProducts& products) {
  static const auto table = [] {
    std::array<void (*)(const SmallProducts&), dtype_count> filling{};
    HWY_DYNAMIC_DISPATCH(FillSmallTable)(filling);
    return filling;
  }();
  table[dtype.code](products);
}
}  // namespace tessera::kernels
#endif
