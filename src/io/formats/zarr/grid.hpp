// The regular grid of chunks over an array: which chunks a box touches, where each one is, and its file.
// Pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/box.hpp"

namespace tessera::io::zarr {

// A chunk by its place in the grid of all chunks.
using Place = std::vector<std::int64_t>;

// The chunks that a box touches, the last dim fastest; nothing of an empty one. Of a scalar the one there is.
void for_each_chunk(const Shape& chunk, const Box&, const std::function<void(const Place&)>& visit);
Box box_of(const Shape& chunk, const Place&);  // may reach beyond the array
// The box seen from the first element of `outer`.
Box within(const Box& outer, const Box&);
// Elements from the first one of a dense array to the box's, by strides.
std::int64_t offset_of(const Box&, const std::vector<std::int64_t>& strides);
// "c/0/1", "0.1": below the folder of the array.
std::string key_of(const ArrayMeta&, const Place&);

}  // namespace tessera::io::zarr
