// Parts of files: slices, gathers and masks move below the ops that pass through the dim, to the files.
//
//   (sqrt(x) * 2)[[3, 99]]  ->  sqrt(x[[3, 99]]) * 2, of which two rows are read
#pragma once
#include <optional>
#include <vector>

#include "stream/spill/file_views.hpp"

namespace tessera::stream {

// The result of a node that selects along dims of values made of files; nullopt for other nodes, and where it
// would be as it is. At places that are known now it is made of arrays in files, at others of nodes that read
// a file at places as they are computed.
std::optional<Array> selected(const Node&, const std::vector<Array>& inputs, FileNumbers&);
// The traffic of such a node with the disk, and the memory that it takes besides its result.
struct PlacesRead {
  const FileParams& file;
  int dim;  // of the places
  std::int64_t bytes, temporary_bytes;
};
std::optional<PlacesRead> read_at_places(const Node&);

}  // namespace tessera::stream
