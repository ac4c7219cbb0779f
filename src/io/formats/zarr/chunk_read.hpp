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

// `folder` is the array's. Chunks without a file hold the fill value.
void read_box(const std::string& call, const std::string& folder, const ArrayMeta&, const Box&,
              const Target&);
void read_box(const std::string& call, const std::string& folder, const ArrayMeta&, const Box&,
              std::byte* dense);
void fill_box(const ArrayMeta&, const Shape& extents, const Target&);

}  // namespace tessera::io::zarr
