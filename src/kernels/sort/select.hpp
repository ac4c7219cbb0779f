// Elements at given positions of sorted rows, found without sorting.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>
#include <span>

namespace tessera::kernels {

// Rows whose elements several ranks hold, in order. add_up(numbers, n) sums them over the ranks.
struct RowParts {
  int part = 0, parts = 1;
  std::function<void(std::int64_t*, std::int64_t)> add_up;
};

// out[row, i]: the element at positions[i] of the sorted row, one of (rows x n) float32 or float64. The order
// is that of sort_rows, with one NaN for all; of elements that equal 0 it is the one that sorting gives.
// Reads the rows once or twice, then only keys near the positions. If rows have several parts, n is the
// length of this part, and every part receives all of out.
void select_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n,
                 std::span<const std::int64_t> positions, const RowParts&, void* out);

// Upper bounds of the sums that select_rows makes over several parts: their total bytes and their number.
struct SelectSums {
  std::int64_t bytes, calls;
};
SelectSums select_sums(Dtype, std::int64_t rows, std::int64_t positions, std::int64_t parts);

}  // namespace tessera::kernels
