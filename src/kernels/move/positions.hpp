// From index arrays to places in a block, and items chosen by a mask: vectorised parts of gathers and of what
// masks choose.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>

namespace tessera::kernels {

// A dim that indices address, and the block [start, stop) of it that is here. Negative indices count from the
// end.
struct Addressed {
  std::int64_t extent = 0;
  bool clamps = false;  // what is outside goes to the nearest end
  std::int64_t start = 0, stop = 0;
};
// out[i]: the place in the block that index i names, -1 where it is not in it.
void find_positions(Dtype, const void* indices, std::int64_t n, const Addressed&, std::int64_t* out);

// The first `count` items that the mask chooses, in order; there are as many. itemsize: 1, 2, 4 or 8.
void choose_items(std::size_t itemsize, const void* items, const std::uint8_t* mask, std::int64_t n,
                  std::int64_t count, void* out);

// Each of `extent` items n times, one after the other.
void repeat(void* dst, const void* src, std::int64_t extent, std::int64_t n, std::size_t itemsize);

}  // namespace tessera::kernels
