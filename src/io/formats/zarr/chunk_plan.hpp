// Which rank writes which chunk, when an array is written whose blocks are not its chunks. Pure.
//
//   blocks of 3 ranks   0 0 0 0 | 1 1 1 1 | 2 2        chunk 0: rank 0 has all of it
//   chunks of 3         0 0 0 1 1 1 2 2 2 3            chunk 1: rank 0 sends one of three to rank 1
//
// A chunk belongs to the rank that has most of it; where several have as much, to each of them in turn. Each
// rank finds out about its own chunks alone, and all come to the same owners.
#pragma once
#include <vector>

#include "io/formats/zarr/grid.hpp"

namespace tessera::io::zarr {

// A rank and the box of the array that it holds and writes.
struct Writer {
  int device = 0;
  Box box;
};
// A part of a chunk, and where it is.
struct Part {
  int device = 0;
  Box box;
};
struct OwnedChunk {
  Place place;
  std::vector<Part> parts;  // in the order of the writers
};
struct ChunkPlan {
  std::vector<OwnedChunk> owned;
  std::vector<Part> sends;  // the device is the one that they go to; in the order of the chunks
};
ChunkPlan plan_chunks(const Shape& chunk, const std::vector<Writer>&, int device);

}  // namespace tessera::io::zarr
