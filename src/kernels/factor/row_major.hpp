// Transposes between rows and columns, for the dense factorizations.
#pragma once
#include <algorithm>
#include <complex>
#include <cstdint>

#include "kernels/blas_types.hpp"
#include "kernels/move/copy.hpp"

namespace tessera::kernels {

// Transposes (rows, columns), with rows ld_from apart, to (columns, rows), with rows ld_to apart. On all
// threads.
template <class T> void transpose(const T* from, std::int64_t ld_from, std::int64_t rows,
                                  std::int64_t columns, T* to, std::int64_t ld_to) {
  constexpr std::int64_t small = 4096;  // elements, up to which a plain loop is faster
  if (rows * columns > small) {
    const std::int64_t of_to[] = {1, ld_to}, of_from[] = {ld_from, 1};
    return copy_strided(reinterpret_cast<std::byte*>(to), of_to, reinterpret_cast<const std::byte*>(from),
                        of_from, {rows, columns}, sizeof(T));
  }
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * ld_to + i] = from[i * ld_from + j];
}
// Transposes dense matrices.
template <class T> void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  transpose(from, columns, rows, columns, to, rows);
}

// A leading dimension that puts columns of a large matrix into different cache sets.
inline std::int64_t leading_dimension(std::int64_t n) {
  return n >= 256 && n % 64 == 0 ? n + 8 : std::max<std::int64_t>(n, 1);
}

}  // namespace tessera::kernels
