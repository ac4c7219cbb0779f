// Elements at given positions of sorted rows, found without sorting.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <functional>
#include <span>

namespace tessera::kernels {

// Rows whose elements lie on several ranks, in order. add_up(numbers, n) sums them over the ranks.
struct RowParts {
  int part = 0, parts = 1;
  std::function<void(std::int64_t*, std::int64_t)> add_up;
};

// out[row, i]: the element at positions[i] of the sorted row, one of (rows x n) float32 or float64. The order
// is that of sort_rows, with one NaN for all; of elements that equal 0 it is the very one that sorting gives.
// Reads the rows once or twice, and again what lies near the positions. Over several parts n is this part's
// length, and every part gets all of out.
void select_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n,
                 std::span<const std::int64_t> positions, const RowParts&, void* out);

// The sums that select_rows makes over several parts: their bytes in all and their number, at most.
struct SelectSums {
  std::int64_t bytes, calls;
};
SelectSums select_sums(Dtype, std::int64_t rows, std::int64_t positions, std::int64_t parts);

}  // namespace tessera::kernels
