// Elements at given positions of sorted rows, found without sorting.
#pragma once
#include <tessera/dtype.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>

namespace tessera::kernels {

// Rows of `total` elements that several ranks hold, in order; this part begins at `first`. add_up(numbers, n)
// sums them over the ranks.
struct RowParts {
  int part = 0, parts = 1;
  std::int64_t first = 0, total = 0;
  std::function<void(std::int64_t*, std::int64_t)> add_up;
};

// out[row, i]: the element at positions[i] of the sorted row, one of (rows x n) float32 or float64. The order
// is that of sort_rows, with one NaN for all; of elements that equal 0 it is the one that sorting gives.
// Reads the rows once or twice, then only keys near the positions. If rows have several parts, n is the
// length of this part, and every part receives all of out.
void select_rows(Dtype, const void* data, std::int64_t rows, std::int64_t n,
                 std::span<const std::int64_t> positions, const RowParts&, void* out);

// Upper bounds of the sums that select_rows makes over several parts of rows of n elements: bytes and number.
struct SelectSums {
  std::int64_t bytes, calls;
};
SelectSums select_sums(Dtype, std::int64_t rows, std::int64_t n, std::int64_t positions, std::int64_t parts);

// Writes the keys (order_key.hpp) of n elements that lie in [least, most] to `out`, in their order; `out` has
// room for 64 bytes more than they take.
struct KeysBetween {
  std::int64_t kept = 0, below = 0;  // of the elements: written, and those whose keys are less
};
KeysBetween keys_between(const float* x, std::int64_t n, std::uint32_t least, std::uint32_t most,
                         std::uint32_t* out);
KeysBetween keys_between(const double* x, std::int64_t n, std::uint64_t least, std::uint64_t most,
                         std::uint64_t* out);

// out: the payload of elements whose side is 0, then of those on side 1, then on side 2, each in its order.
// Returns their numbers. P: std::uint32_t or std::uint64_t.
template <class P> std::array<std::int64_t, 3> divide_by_sides(const std::uint8_t* sides, const P* payload,
                                                               std::int64_t n, P* out);

}  // namespace tessera::kernels
