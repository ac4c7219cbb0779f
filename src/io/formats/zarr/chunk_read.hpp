// Reads a box of an array from the chunk files in its folder, on this rank. IoErrors name the file.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "io/formats/zarr/grid.hpp"

namespace tessera::io::zarr {

// The memory that receives a box: its first element, and the strides along each dim, in elements.
struct Target {
  std::byte* at = nullptr;
  std::vector<std::int64_t> strides;
};

// `folder` is the array's. Chunks without a file hold the fill value. Threads beyond the first wait for other
// files meanwhile, and each takes memory for a chunk, packed and unpacked.
void read_box(const std::string& call, const std::string& folder, const ArrayMeta&, const Box&, const Target&,
              int threads = 1);
void read_box(const std::string& call, const std::string& folder, const ArrayMeta&, const Box&,
              std::byte* dense, int threads = 1);
// Threads that make a read of many small chunks fast at little memory; 1 for large ones.
int reading_threads(const ArrayMeta&);
void fill_box(const ArrayMeta&, const Shape& extents, const Target&);

}  // namespace tessera::io::zarr
