// Translation of index arrays to positions in a block, and selection of items by a mask: the vectorised parts
// of gathers and boolean indexing.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

// A dim addressed by indices, and the block [start, stop) of it that this rank holds. Negative indices count
// from the end.
struct Addressed {
  std::int64_t extent = 0;
  bool clamps = false;  // indices out of range become the nearest end
  std::int64_t start = 0, stop = 0;
};
// out[i] = the position in the block of index i, or -1 if it is not in the block.
void find_positions(Dtype, const void* indices, std::int64_t n, const Addressed&, std::int64_t* out);

// The first `count` items that the mask chooses, in order. itemsize: 1, 2, 4 or 8. Returns how many items it
// read: the last one that it chose and those before it.
std::int64_t choose_items(std::size_t itemsize, const void* items, const std::uint8_t* mask, std::int64_t n,
                          std::int64_t count, void* out);

// out[i]: elements 8 i to 8 i + 7 of a mask as the bits of a byte, the first the highest or the lowest.
void pack_bits(const std::uint8_t* mask, std::int64_t bytes, bool lowest_first, std::uint8_t* out);

// Repeats each of `extent` items n times in a row.
void repeat(void* dst, const void* src, std::int64_t extent, std::int64_t n, std::size_t itemsize);

}  // namespace tessera::kernels
