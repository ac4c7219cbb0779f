// c += a b in tiles that stay in vector registers:
//
//            NR columns       a in strips of 3 vectors of rows, column by column (second-level cache)
//          +--------+         b in strips of NR columns, row by row (first-level cache)
//   3      | c tile |  += column of a
//   vectors|        |     times row of b
//          +--------+
#if defined(TESSERA_KERNELS_PRODUCT_TILE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_PRODUCT_TILE_INL_HPP
#undef TESSERA_KERNELS_PRODUCT_TILE_INL_HPP
#else
#define TESSERA_KERNELS_PRODUCT_TILE_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/dense/panel_product.hpp"
#include "kernels/move/turn-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct TileShape {
  static constexpr hn::ScalableTag<T> d{};
  static constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(d)), vectors = 3,
                                rows = vectors * lanes;
  static constexpr std::int64_t columns =
      HWY_TARGET <= HWY_AVX3 ? 8 : 4;  // 24 of 32 registers hold the tile, or 12 of 16
};

// A strip of b, packed or in place.
template <class T> struct PackedStrip {
  const T* data;
  HWY_INLINE T operator()(std::int64_t l, std::int64_t j) const {
    return data[l * TileShape<T>::columns + j];
  }
};
template <class T> struct ColumnsInPlace {
  const T* data;
  std::int64_t ld;
  HWY_INLINE T operator()(std::int64_t l, std::int64_t j) const { return data[l + j * ld]; }
};

// The destination of a tile's sums.
template <class T> struct Adds {  // c += alpha sums
  T alpha;
  template <class V> HWY_INLINE void store(V sum, T* place) const {
    constexpr auto d = TileShape<T>::d;
    hn::StoreU(hn::MulAdd(hn::Set(d, alpha), sum, hn::LoadU(d, place)), d, place);
  }
  HWY_INLINE void store_one(T sum, T* place) const { *place += alpha * sum; }
};
template <class T> struct Sets {  // c = sums
  template <class V> HWY_INLINE void store(V sum, T* place) const { hn::StoreU(sum, TileShape<T>::d, place); }
  HWY_INLINE void store_one(T sum, T* place) const { *place = sum; }
};

// One tile of V vectors of rows.
template <int V, class T, class B, class Store>
HWY_INLINE void multiply_tile(std::int64_t depth, const T* HWY_RESTRICT a, const B b, const Store store,
                              T* HWY_RESTRICT c, std::int64_t ldc) {
  using Shape = TileShape<T>;
  constexpr auto d = Shape::d;
  constexpr int width = static_cast<int>(Shape::columns);
  hn::Vec<decltype(hn::ScalableTag<T>())> sum[width][V];
#pragma GCC unroll 8
  for (int j = 0; j < width; ++j) {
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) sum[j][v] = hn::Zero(d);
#pragma GCC unroll 4
    for (int v = 0; v <= V; ++v) hwy::Prefetch(c + j * ldc + v * Shape::lanes);  // needed at the end
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    const T* row = a + l * Shape::rows;
    hn::Vec<decltype(hn::ScalableTag<T>())> left[V];
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) left[v] = hn::Load(d, row + v * Shape::lanes);
#pragma GCC unroll 8
    for (int j = 0; j < width; ++j) {
      const auto right = hn::Set(d, b(l, j));
#pragma GCC unroll 3
      for (int v = 0; v < V; ++v) sum[j][v] = hn::MulAdd(left[v], right, sum[j][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < width; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < V; ++v) store.store(sum[j][v], c + j * ldc + v * Shape::lanes);
}

// Multiplies rows [from, to) of a strip for `columns` columns of the tile at c (which begins at row 0 of the
// strip).
template <class T, class B, class Store>
HWY_INLINE void multiply_strip(std::int64_t depth, const T* a, const B b, const Store store,
                               std::int64_t from, std::int64_t to, std::int64_t columns, T* c,
                               std::int64_t ldc) {
  using Shape = TileShape<T>;
  if (from == 0 && columns == Shape::columns && to == Shape::rows)
    return multiply_tile<3>(depth, a, b, store, c, ldc);
  HWY_ALIGN T tile[Shape::rows * Shape::columns] = {};
  if (to <= Shape::lanes)  // sums as they are in a whole tile: one of -0 stays -0
    multiply_tile<1>(depth, a, b, Sets<T>{}, tile, Shape::rows);
  else if (to <= 2 * Shape::lanes)
    multiply_tile<2>(depth, a, b, Sets<T>{}, tile, Shape::rows);
  else
    multiply_tile<3>(depth, a, b, Sets<T>{}, tile, Shape::rows);
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = from; i < to; ++i) store.store_one(tile[i + j * Shape::rows], c + i + j * ldc);
}

// `depth` items of each of `lines` lines, side by side: packed[l * width + i] = item l of line i. Lines
// [lines, width) are zeros.
template <std::int64_t width, class T> HWY_INLINE void pack_strip(std::int64_t lines, std::int64_t depth,
                                                                  const T* from, std::int64_t line_step,
                                                                  std::int64_t step, T* HWY_RESTRICT packed) {
  constexpr auto item = static_cast<std::int64_t>(sizeof(T)), square = 16 / item;
  if (lines == width && line_step == 1) {
    for (std::int64_t l = 0; l < depth; ++l)
      for (std::int64_t i = 0; i < width; ++i) packed[l * width + i] = from[l * step + i];
    return;
  }
  std::int64_t done = 0;
  if (width % square == 0 && lines == width && step == 1)  // one lane (scalar target) has strips of three
    for (; done + square <= depth; done += square)
      for (std::int64_t i = 0; i < width; i += square)
        turn<T, static_cast<std::size_t>(square)>(
            reinterpret_cast<const std::byte*>(from + done + i * line_step), line_step * item,
            reinterpret_cast<std::byte*>(packed + done * width + i), width * item);
  for (std::int64_t l = done; l < depth; ++l)
    for (std::int64_t i = 0; i < width; ++i)
      packed[l * width + i] = i < lines ? from[i * line_step + l * step] : T(0);
}

template <class T> void pack_rows(std::int64_t rows, std::int64_t depth, Steps<T> a, T* packed) {
  constexpr std::int64_t height = TileShape<T>::rows;
  for (std::int64_t first = 0; first < rows; first += height, packed += height * depth)
    pack_strip<height>(std::min(height, rows - first), depth, a.data + first * a.row_step, a.row_step,
                       a.column_step, packed);
}

template <class T> void pack_columns(std::int64_t depth, std::int64_t columns, Steps<T> b, T* packed) {
  constexpr std::int64_t width = TileShape<T>::columns;
  for (std::int64_t first = 0; first < columns; first += width, packed += width * depth)
    pack_strip<width>(std::min(width, columns - first), depth, b.data + first * b.column_step, b.column_step,
                      b.row_step, packed);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#endif  // TESSERA_KERNELS_PRODUCT_TILE_INL_HPP
