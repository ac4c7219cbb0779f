#include "base/thresholds.hpp"
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/factor/panel_solve.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dense/product_tile-inl.hpp"
#include "kernels/factor/panel_solve.hpp"
#include "kernels/parallel.hpp"
#include "types/buffer.hpp"

#ifndef TESSERA_PANEL_SOLVE_TYPES
#define TESSERA_PANEL_SOLVE_TYPES
namespace tessera::kernels {
namespace {

// L in blocks of columns of X: block k has, for each column l of L up to its own last one, the rows of L that
// belong to its columns, padded with zeros. `inverse` holds the reciprocals of the diagonal.
template <class T> struct PackedTriangle {
  std::int64_t n;
  const T *blocks, *inverse;
};
constexpr std::int64_t worthwhile_multiplications = std::int64_t{1} << 19;  // of a thread

}  // namespace
}  // namespace tessera::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

// Solves for one block of columns of a strip: x holds the solved columns before `first` and B from there on.
template <class T> HWY_INLINE void solve_block(std::int64_t first, const T* HWY_RESTRICT l,
                                               const T* HWY_RESTRICT inverse, T* x) {
  using Shape = TileShape<T>;
  constexpr auto d = Shape::d;
  constexpr int width = static_cast<int>(Shape::columns), vectors = static_cast<int>(Shape::vectors);
  hn::Vec<decltype(hn::ScalableTag<T>())> sum[width][vectors];
#pragma GCC unroll 8
  for (int j = 0; j < width; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) sum[j][v] = hn::Zero(d);
  for (std::int64_t k = 0; k < first; ++k) {
    hn::Vec<decltype(hn::ScalableTag<T>())> left[vectors];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) left[v] = hn::Load(d, x + k * Shape::rows + v * Shape::lanes);
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) {
      const auto right = hn::Set(d, l[k * width + j]);
#pragma GCC unroll 3
      for (int v = 0; v < vectors; ++v) sum[j][v] = hn::MulAdd(left[v], right, sum[j][v]);
    }
  }
  T* const own = x + first * Shape::rows;
  const T* const corner = l + first * width;
#pragma GCC unroll 8
  for (int j = 0; j < width; ++j) {
    const auto scale = hn::Set(d, inverse[j]);
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      T* const place = own + j * Shape::rows + v * Shape::lanes;
      auto rest = hn::Sub(hn::Load(d, place), sum[j][v]);
#pragma GCC unroll 8
      for (int i = 0; i < j; ++i) rest = hn::NegMulAdd(sum[i][v], hn::Set(d, corner[i * width + j]), rest);
      sum[j][v] = hn::Mul(rest, scale);
      hn::Store(sum[j][v], d, place);
    }
  }
}

template <class T> void pack_triangle(std::int64_t n, const T* l, std::int64_t ldl, T* blocks, T* inverse) {
  constexpr std::int64_t width = TileShape<T>::columns;
  for (std::int64_t first = 0; first < n; first += width)
    for (std::int64_t k = 0; k < first + width; ++k)
      for (std::int64_t j = 0; j < width; ++j)
        *blocks++ = k <= first + j && first + j < n ? l[first + j + k * ldl] : T(0);
  for (std::int64_t j = 0; j < n; ++j) inverse[j] = T(1) / l[j + j * ldl];
  std::fill(inverse + n, inverse + (n + width - 1) / width * width, T(0));
}

template <class T> std::int64_t in_whole_blocks(std::int64_t n) {
  constexpr std::int64_t width = TileShape<T>::columns;
  return (n + width - 1) / width * width;
}

// x: memory for one strip of all columns.
template <class T> void solve_rows(std::int64_t m, const PackedTriangle<T>& l, T* b, std::int64_t ldb, T* x) {
  using Shape = TileShape<T>;
  constexpr std::int64_t height = Shape::rows, width = Shape::columns;
  std::fill(x + l.n * height, x + in_whole_blocks<T>(l.n) * height, T(0));
  for (std::int64_t row = 0; row < m; row += height) {
    const std::int64_t lines = std::min(height, m - row);
    pack_strip<height>(lines, l.n, b + row, 1, ldb, x);
    const T* block = l.blocks;
    for (std::int64_t first = 0; first < l.n; first += width) {
      solve_block(first, block, l.inverse + first, x);
      block += (first + width) * width;
    }
    for (std::int64_t j = 0; j < l.n; ++j) std::copy_n(x + j * height, lines, b + row + j * ldb);
  }
}

template <class T>
void solve(std::int64_t m, std::int64_t n, const T* l, std::int64_t ldl, T* b, std::int64_t ldb) {
  using Shape = TileShape<T>;
  const std::int64_t padded = in_whole_blocks<T>(n);
  const auto memory_of = [](std::int64_t count) {
    return Buffer::allocate(static_cast<std::size_t>(count) * sizeof(T));
  };
  Buffer packed = memory_of(padded * (padded + Shape::columns) / 2 + padded);
  T* const blocks = reinterpret_cast<T*>(packed.data());
  T* const inverse = blocks + padded * (padded + Shape::columns) / 2;
  pack_triangle(n, l, ldl, blocks, inverse);
  share(
      m, std::max<std::int64_t>(threshold(worthwhile_multiplications) / std::max<std::int64_t>(n * n, 1), 1),
      Shape::rows, [&](std::int64_t begin, std::int64_t end) {
        Buffer strip = memory_of(padded * Shape::rows);
        solve_rows<T>(end - begin, {n, blocks, inverse}, b + begin, ldb, reinterpret_cast<T*>(strip.data()));
      });
}
void SolvePanel32(std::int64_t m, std::int64_t n, const float* l, std::int64_t ldl, float* b,
                  std::int64_t ldb) {
  solve(m, n, l, ldl, b, ldb);
}
void SolvePanel64(std::int64_t m, std::int64_t n, const double* l, std::int64_t ldl, double* b,
                  std::int64_t ldb) {
  solve(m, n, l, ldl, b, ldb);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(SolvePanel32);
HWY_EXPORT(SolvePanel64);

void solve_transposed_right(std::int64_t m, std::int64_t n, const float* l, std::int64_t ldl, float* b,
                            std::int64_t ldb) {
  HWY_DYNAMIC_DISPATCH(SolvePanel32)(m, n, l, ldl, b, ldb);
}
void solve_transposed_right(std::int64_t m, std::int64_t n, const double* l, std::int64_t ldl, double* b,
                            std::int64_t ldb) {
  HWY_DYNAMIC_DISPATCH(SolvePanel64)(m, n, l, ldl, b, ldb);
}

}  // namespace tessera::kernels
#endif
