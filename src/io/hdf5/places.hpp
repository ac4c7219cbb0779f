// Datasets that a writer fills: made, extended, and where the bytes of their chunks lie. For the one rank
// that has the file open; plans are plain values that all ranks know.
#pragma once
#include <tessera/io/hdf5_writer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5/library.hpp"
#include "types/box.hpp"

namespace tessera::io {

// How a dataset is stored: pieces of one shape that tile it from its origin on, the last ones reaching beyond
// it; or, where the chunk is empty, densely as one piece.
struct ChunkPlan {
  Shape held;  // the extents of what is there
  Shape chunk;
  std::int64_t compression = 0, is_shuffled = 0;
};
// A chunk by its place in the grid of all chunks.
using Chunk = std::vector<std::int64_t>;

// For a new dataset whose first rows are `slab`.
ChunkPlan new_plan(const Shape& slab, Dtype, const Hdf5DatasetOptions&, bool grows);
// Checks the options of a user.
void check_options(const std::string& call, const Shape& slab, Dtype, const Hdf5DatasetOptions&);
// The plan that extends a dataset; nothing if there is none. Refuses a dataset that a slab of this kind
// cannot be added to.
std::optional<ChunkPlan> plan_to_extend(const Hdf5Source&, hid_t file, const Shape& slab, Dtype);

std::vector<Chunk> chunks_of(const Shape& chunk, const Box&);  // that a box touches, the last dim fastest
Box box_of_chunk(const Shape& chunk, const Chunk& at);

bool hdf5_exists(hid_t file, const std::string& path);
// "x" and "/x" are one dataset.
std::string absolute_name(const std::string& path);
// `most`: -1 for an extent without a limit.
Handle create_dataset(const Hdf5Source&, hid_t file, const Shape& extents, const Shape& most, Dtype,
                      const ChunkPlan&);
Handle extend_dataset(const Hdf5Source&, hid_t file, const Shape& extents);
std::int64_t place_of_dense(const Hdf5Source&, hid_t dataset);
// File offsets of the chunks, which are not compressed.
std::vector<std::int64_t> places_of(const Hdf5Source&, hid_t dataset, const ChunkPlan&,
                                    const std::vector<Chunk>&, std::int64_t chunk_bytes);
// The same for chunks of these sizes, which are given space anew.
std::vector<std::int64_t> places_for(const Hdf5Source&, hid_t dataset, const ChunkPlan&,
                                     const std::vector<Chunk>&, const std::vector<std::int64_t>& bytes);

}  // namespace tessera::io
