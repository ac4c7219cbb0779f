// What the files of dense factorizations share: typed views of untyped memory, and rows turned into columns.
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>

namespace tessera::kernels {

template <class T> const T* as(const void* p) { return static_cast<const T*>(p); }
template <class T> T* as(void* p) { return static_cast<T*>(p); }

// to (columns, rows) = transposed from (rows, columns), both dense row-major; 16 x 16 tiles stay in the
// nearest cache.
template <class T> void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
    for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
      for (std::int64_t i = i0; i < std::min(i0 + tile, rows); ++i)
        for (std::int64_t j = j0; j < std::min(j0 + tile, columns); ++j)
          to[j * rows + i] = from[i * columns + j];
}

}  // namespace tessera::kernels
