// An array into the chunks of a Zarr array, by all ranks: borders of chunks are brought together, each rank
// packs and writes whole files of its own.
#pragma once
#include <tessera/array.hpp>

#include <string>
#include <vector>

#include "io/formats/zarr/chunk_plan.hpp"
#include "io/formats/zarr/codecs/chain.hpp"
#include "io/formats/zarr/grid.hpp"
#include "io/team.hpp"

namespace tessera::io::zarr {

struct WriteTask {
  std::string call;
  const ArrayMeta& meta;            // with the extents after the write
  std::string folder;               // where the chunks go
  Place origin;                     // of the values within the array
  std::string old_folder = {};      // of the chunks that are there before
  Shape old_shape = {};             // what of them holds values; empty where there are none
  bool keeps_empty_chunks = false;  // also chunks that hold nothing but the fill value become files
};
// `x` is computed. Collective; what was written is on the disk. Gives the keys of this rank's chunks that
// have a file, and of those that must have none.
struct WrittenKeys {
  std::vector<std::string> files, empty;
};
WrittenKeys write_chunks(const Team&, const WriteTask&, const Array& x);

bool holds_only(const Element&, const std::byte* data, std::int64_t elements, std::size_t width);
// A chunk of dense values as its file holds it; `data` is dense and in the array's own order.
Piece encode_chunk(const ArrayMeta&, const std::byte* data);

}  // namespace tessera::io::zarr
