// The regular grid of chunks over an array: the chunks that a box touches, their boxes, and their files.
// Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/box.hpp"

namespace tessera::io::zarr {

// A chunk by its index in the grid of all chunks.
using ChunkIndex = std::vector<std::int64_t>;

// Visits the chunks that a box touches, the last dim fastest; none for an empty box, the only chunk for a
// scalar.
void for_each_chunk(const Shape& chunk, const Box&, const std::function<void(const ChunkIndex&)>& visit);
Box box_of(const Shape& chunk, const ChunkIndex&);  // may reach beyond the array
// The box relative to the first element of `outer`.
Box within(const Box& outer, const Box&);
// The offset of the box's first element in a dense array, by strides.
std::int64_t offset_of(const Box&, const std::vector<std::int64_t>& strides);
// The file of a chunk relative to the array's folder: "c/0/1", "0.1".
std::string key_of(const ArrayMeta&, const ChunkIndex&);

}  // namespace tessera::io::zarr
