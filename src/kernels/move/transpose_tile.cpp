// A block is one cache line of items each way (16 x 16 for 4-byte items). Lines of the source are read whole,
// transposed in registers in units of 16 bytes, gathered in a small square, and lines of the destination are
// written whole:
//
//   source lines            square (in L1)           destination lines
//   j  aaaabbbb....         abcd...                  i  abcd....
//      ccccdddd....   ->    abcd...            ->       (bypassing the cache when the plane is large)
#include "base/thresholds.hpp"
#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/move/transpose_tile.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/move/transpose_tile.hpp"
#include "kernels/move/turn-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t line_bytes = 64;

struct Plane {
  std::byte* dst;
  std::int64_t dst_stride;  // bytes
  const std::byte* src;
  std::int64_t src_stride;  // bytes
};

struct Item16 {};

template <class T> inline constexpr std::int64_t item_bytes = static_cast<std::int64_t>(sizeof(T));
template <> inline constexpr std::int64_t item_bytes<Item16> = 16;

// One block: dst row i, column j (items) from src row j, column i.
template <class T, bool streaming>
HWY_INLINE void turn_block(const Plane& plane, std::int64_t i, std::int64_t j) {
  constexpr std::int64_t item = item_bytes<T>, lanes = 16 / item, side = line_bytes / item;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (item == 4 || item == 8) {  // without the square
    std::byte* const to = plane.dst + i * plane.dst_stride + j * item;
    const auto store = [&](std::int64_t row, auto line) HWY_ATTR {
      T* const at = reinterpret_cast<T*>(to + row * plane.dst_stride);
      if constexpr (streaming)
        hn::Stream(line, hn::Full512<T>(), at);
      else
        hn::StoreU(line, hn::Full512<T>(), at);
    };
    return turn_lines<T, static_cast<std::size_t>(side)>(plane.src + j * plane.src_stride + i * item,
                                                         plane.src_stride, store);
  }
#endif
  alignas(64) std::byte square[side * line_bytes];
  const std::byte* src = plane.src + j * plane.src_stride + i * item;
  for (std::int64_t row = 0; row < side; row += lanes)
    for (std::int64_t unit = 0; unit < side; unit += lanes) {
      const std::byte* from = src + row * plane.src_stride + unit * item;
      std::byte* to = square + unit * line_bytes + row * item;
      if constexpr (lanes == 1)  // one item fills a unit
        std::memcpy(to, from, 16);
      else
        turn<T, static_cast<std::size_t>(lanes)>(from, plane.src_stride, to, line_bytes);
    }
  const hn::CappedTag<std::uint8_t, 64> d;
  const auto width = static_cast<std::int64_t>(hn::Lanes(d));
  std::byte* dst = plane.dst + i * plane.dst_stride + j * item;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t at = 0; at < line_bytes; at += width) {
      const auto piece = hn::Load(d, reinterpret_cast<const std::uint8_t*>(square + row * line_bytes + at));
      auto* to = reinterpret_cast<std::uint8_t*>(dst + row * plane.dst_stride + at);
      if constexpr (streaming)
        hn::Stream(piece, d, to);
      else
        hn::StoreU(piece, d, to);
    }
}

template <class T> HWY_INLINE void copy_rest(const Plane& plane, std::int64_t i0, std::int64_t i1,
                                             std::int64_t j0, std::int64_t j1) {
  constexpr std::int64_t item = item_bytes<T>;
  for (std::int64_t i = i0; i < i1; ++i)
    for (std::int64_t j = j0; j < j1; ++j)
      std::memcpy(plane.dst + i * plane.dst_stride + j * item, plane.src + j * plane.src_stride + i * item,
                  item);
}

// The last blocks of rows and columns overlap those before.
template <class T, bool streaming>
void turn_plane(const Plane& plane, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t side = line_bytes / item_bytes<T>;
  // Strips of source rows, few enough that their pages stay in the TLB during the walk.
  constexpr std::int64_t strip = 256;
  const std::int64_t whole_rows = rows / side * side;
  for (std::int64_t j0 = 0; j0 < columns; j0 += strip) {
    const std::int64_t j1 = std::min(j0 + strip, columns), whole = j0 + (j1 - j0) / side * side;
    const auto turn_rows = [&](std::int64_t i) HWY_ATTR {
      for (std::int64_t j = j0; j < whole; j += side) turn_block<T, streaming>(plane, i, j);
      if (whole < j1 && !streaming && j1 >= side)
        turn_block<T, streaming>(plane, i, j1 - side);
      else
        copy_rest<T>(plane, i, i + side, whole, j1);
    };
    for (std::int64_t i = 0; i < whole_rows; i += side) turn_rows(i);
    if (whole_rows < rows && rows >= side)
      turn_rows(rows - side);
    else
      copy_rest<T>(plane, whole_rows, rows, j0, j1);
  }
}

template <class T> void turn_items(const Plane& plane, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t item = item_bytes<T>, usual = std::int64_t{8} << 20;
  const std::int64_t large = threshold(usual);
  const bool lines =
      reinterpret_cast<std::uintptr_t>(plane.dst) % line_bytes == 0 && plane.dst_stride % line_bytes == 0;
  if (lines && rows * columns * item >= large) {
    turn_plane<T, true>(plane, rows, columns);
    hwy::FlushStream();
  } else {
    turn_plane<T, false>(plane, rows, columns);
  }
}

void TransposePlane(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                    std::int64_t rows, std::int64_t columns, std::size_t itemsize) {
  const auto item = static_cast<std::int64_t>(itemsize);
  const Plane plane{dst, dst_stride * item, src, src_stride * item};
  switch (itemsize) {
    case 1: return turn_items<std::uint8_t>(plane, rows, columns);
    case 2: return turn_items<std::uint16_t>(plane, rows, columns);
    case 4: return turn_items<std::uint32_t>(plane, rows, columns);
    case 8: return turn_items<std::uint64_t>(plane, rows, columns);
    default: return turn_items<Item16>(plane, rows, columns);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(TransposePlane);
void transpose_plane(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
                     std::int64_t rows, std::int64_t columns, std::size_t itemsize) {
  HWY_DYNAMIC_DISPATCH(TransposePlane)(dst, dst_stride, src, src_stride, rows, columns, itemsize);
}
}  // namespace tessera::kernels
#endif
