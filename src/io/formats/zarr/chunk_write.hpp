// Writes an array into the chunks of a Zarr array, by all ranks: chunks on the borders of blocks are
// assembled on one rank, and each rank packs and writes whole files of its own.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <string>
#include <vector>

#include "io/formats/zarr/chunk_files.hpp"
#include "io/formats/zarr/chunk_plan.hpp"
#include "io/formats/zarr/codecs/chain.hpp"
#include "io/formats/zarr/grid.hpp"
#include "io/team.hpp"

namespace tessera::io::zarr {

struct WriteTask {
  std::string call;
  const ArrayMeta& meta;            // with the extents after the write
  std::string folder;               // the folder that receives the chunks
  ChunkIndex origin;                // index of the first value within the array
  std::string old_folder = {};      // of the existing chunks
  Shape old_shape = {};             // the extents of the existing values; empty if there are none
  bool keeps_empty_chunks = false;  // chunks that hold only the fill value also become files
};
// `x` must be computed. Collective; all data are on the disk on return. Returns the keys of this rank's
// chunks that have a file, and of those that must have none.
struct WrittenKeys {
  std::vector<std::string> files, empty;
};
WrittenKeys write_chunks(const Team&, const WriteTask&, const Array& x);
// write_chunks in two steps: exchanges the data (collective), and returns the function that writes this
// rank's chunks, for any thread. task.meta and `files`, whose sync() the caller calls, must outlive it.
std::function<WrittenKeys()> prepared_write(const Team&, const WriteTask&, ChunkFiles& files, const Array& x);

bool holds_only(const Element&, const std::byte* data, std::int64_t elements, std::size_t width);
// Encodes a chunk as its file stores it; `data` is dense, in the array's own order.
EncodedBytes encode_chunk(const ArrayMeta&, const std::byte* data);

}  // namespace tessera::io::zarr
