// An array as the chunks of a dataset, on every rank: which part of which chunk is here, and its bytes as
// HDF5 stores them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/blocks.hpp"
#include "io/file.hpp"
#include "io/hdf5/places.hpp"

namespace tessera::io {

// This rank's block of an array whose first row is row `first_row` of the dataset, written into the chunks,
// which begin at `places`; `chunks` are all that the array touches.
void write_parts(File&, const Array& x, std::int64_t first_row, const ChunkPlan&,
                 const std::vector<Chunk>& chunks, const std::vector<std::int64_t>& places);

// The array as a matrix with a chunk in each row, in the order of chunks_of, each whole on one rank. The
// array begins where a chunk does; what the last chunks have beyond it is zero.
Array chunk_rows(const Array& x, const Shape& chunk);
// The rows that this rank writes: the first of them, and each as stored.
struct StoredChunks {
  std::int64_t first = 0;
  std::vector<std::vector<std::byte>> bytes;
};
StoredChunks compressed_rows(const Array& rows, const ChunkPlan&);

}  // namespace tessera::io
