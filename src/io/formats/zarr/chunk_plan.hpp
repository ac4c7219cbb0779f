// Assigns chunks to the ranks that write them, when an array's blocks do not coincide with its chunks. Pure.
//
//   blocks of 3 ranks   0 0 0 0 | 1 1 1 1 | 2 2        chunk 0: rank 0 has all of it
//   chunks of 3         0 0 0 1 1 1 2 2 2 3            chunk 1: rank 0 sends one of three to rank 1
//
// A chunk belongs to the rank that holds most of it; ties rotate over the candidates. Each rank plans only
// its own chunks, and all arrive at the same owners.
#pragma once
#include <vector>

#include "io/formats/zarr/grid.hpp"

namespace tessera::io::zarr {

// A rank and the box of the array that it holds and writes.
struct Writer {
  int device = 0;
  Box box;
};
// A part of a chunk, and the device that holds it.
struct ChunkPart {
  int device = 0;
  Box box;
};
struct OwnedChunk {
  ChunkIndex place;
  std::vector<ChunkPart> parts;  // in the order of the writers
};
struct ChunkPlan {
  std::vector<OwnedChunk> owned;
  std::vector<ChunkPart> sends;  // `device` is the receiver; in the order of the chunks
};
ChunkPlan plan_chunks(const Shape& chunk, const std::vector<Writer>&, int device);

}  // namespace tessera::io::zarr
