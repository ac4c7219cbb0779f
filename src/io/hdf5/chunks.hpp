// An array as the chunks of a dataset, on every rank: the parts of chunks that this rank holds, and their
// bytes as HDF5 stores them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/blocks.hpp"
#include "io/file.hpp"
#include "io/hdf5/places.hpp"

namespace tessera::io {

// Writes this rank's block into the chunks, whose file offsets are `places`; the array's first row is row
// `first_row` of the dataset, and `chunks` lists all chunks that the array touches.
void write_parts(File&, const Array& x, std::int64_t first_row, const Hdf5Chunks&,
                 const std::vector<Chunk>& chunks, const std::vector<std::int64_t>& places);

// The array as a matrix with one chunk per row, in the order of chunks_of, each row on one rank. The array
// must begin at a chunk's start; elements of the last chunks beyond the array are zero.
Array chunk_rows(const Array& x, const Shape& chunk);
// The rows that this rank writes.
StoredChunks compressed_rows(const Array& rows, const Hdf5Chunks&);

}  // namespace tessera::io
