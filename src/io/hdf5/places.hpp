// Creates and extends a writer's datasets, and finds the file offsets of their chunks. Called on the one rank
// that has the file open; plans are plain values that all ranks know.
#pragma once
#include <tessera/io/hdf5_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5/library.hpp"
#include "types/box.hpp"

namespace tessera::io {

// How a dataset is stored: in chunks of one shape that tile it from its origin, the last ones reaching beyond
// it; or, if `chunk` is empty, densely in one run.
struct Hdf5Chunks {
  Shape held;  // the current extents
  Shape chunk;
  std::int64_t compression = 0, is_shuffled = 0;
};
// A chunk by its index in the grid of all chunks.
using Chunk = std::vector<std::int64_t>;

inline std::int64_t bytes_of(const Shape& shape, Dtype dtype) {
  return shape.elements() * static_cast<std::int64_t>(itemsize(dtype));
}

// The plan of a new dataset whose first rows are `slab`.
Hdf5Chunks new_plan(const Shape& slab, Dtype, const Hdf5DatasetOptions&, bool grows);
// Checks the user's options.
void check_options(const std::string& call, const Shape& slab, Dtype, const Hdf5DatasetOptions&);
// The plan that extends a dataset; nullopt if there is none. Refuses a dataset to which such a slab cannot be
// added.
std::optional<Hdf5Chunks> plan_to_extend(const Hdf5Source&, hid_t file, const Shape& slab, Dtype);

std::vector<Chunk> chunks_of(const Shape& chunk, const Box&);  // that the box touches, the last dim fastest
Box box_of_chunk(const Shape& chunk, const Chunk& at);

bool hdf5_exists(hid_t file, const std::string& path);
// "x" and "/x" are one dataset.
std::string absolute_name(const std::string& path);
// `most`: -1 for an extent without a limit.
Handle create_dataset(const Hdf5Source&, hid_t file, const Shape& extents, const Shape& most, Dtype,
                      const Hdf5Chunks&);
Handle extend_dataset(const Hdf5Source&, hid_t file, const Shape& extents);
std::int64_t place_of_dense(const Hdf5Source&, hid_t dataset);
// File offsets of uncompressed chunks.
std::vector<std::int64_t> places_of(const Hdf5Source&, hid_t dataset, const Hdf5Chunks&,
                                    const std::vector<Chunk>&, std::int64_t chunk_bytes);
// Compressed chunks of successive numbers, as they are stored.
struct StoredChunks {
  std::int64_t first = 0;
  std::vector<std::vector<std::byte>> bytes;
};
// The same for compressed chunks of these sizes, which get new space. The first rank's own ones are written.
std::vector<std::int64_t> places_for(const Hdf5Source&, hid_t dataset, const Hdf5Chunks&,
                                     const std::vector<Chunk>&, const std::vector<std::int64_t>& bytes,
                                     const StoredChunks& own);
constexpr std::int64_t in_place = 0;  // no chunk lies there

}  // namespace tessera::io
