#include "kernels/transpose_tile.hpp"

#include <algorithm>

namespace tessera::kernels {
namespace {

typedef std::uint16_t Item2 __attribute__((aligned(1), may_alias));
typedef std::uint32_t Item4 __attribute__((aligned(1), may_alias));
typedef std::uint64_t Item8 __attribute__((aligned(1), may_alias));
struct __attribute__((packed, may_alias)) Item16 {
  std::uint64_t low, high;
};

template <class T>
void transpose_items(T* dst, std::int64_t dst_stride, const T* src, std::int64_t src_stride, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t tile = 32;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
    for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
      for (std::int64_t i = i0; i < std::min(i0 + tile, rows); ++i)
        for (std::int64_t j = j0; j < std::min(j0 + tile, columns); ++j) dst[i * dst_stride + j] = src[j * src_stride + i];
}

}  // namespace

void transpose_plane(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride, std::int64_t rows,
                     std::int64_t columns, std::size_t itemsize) {
  const auto run = [&]<class T>(T*) {
    transpose_items(reinterpret_cast<T*>(dst), dst_stride, reinterpret_cast<const T*>(src), src_stride, rows, columns);
  };
  switch (itemsize) {
    case 1: return run(static_cast<std::uint8_t*>(nullptr));
    case 2: return run(static_cast<Item2*>(nullptr));
    case 4: return run(static_cast<Item4*>(nullptr));
    case 8: return run(static_cast<Item8*>(nullptr));
    default: return run(static_cast<Item16*>(nullptr));
  }
}

}  // namespace tessera::kernels
