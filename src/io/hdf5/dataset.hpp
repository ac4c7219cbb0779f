// A dataset of an HDF5 file, read box by box, or made without its values; also in builds without HDF5.
#pragma once
#include <tessera/io.hpp>

#include <string>
#include <vector>

#include "types/box.hpp"

namespace tessera::io {

struct Hdf5Dataset {
  std::string call, path, name;  // `call` opens every message
  bool other_files = false;
};
// Shape, dtype and format; IoError on this rank alone, as all of these.
FileInfo info_of_dataset(const Hdf5Dataset&);
// Empty if it is not chunked. Fails already where a filter of the chunks is not there.
std::vector<std::int64_t> chunks_of_dataset(const Hdf5Dataset&);
// The memory that reading a box takes besides the box, by the bytes of a chunk; 0: not chunked.
std::int64_t dataset_reading_bytes(std::int64_t chunk_bytes);
void read_dataset_box(const Hdf5Dataset&, const FileInfo&, const Box&, std::byte* out);
// Makes a file with a dataset of x's shape and dtype; returns the place of its values in the file.
std::int64_t prepare_hdf5_dataset(const std::string& call, const std::string& file, const std::string& name,
                                  const Array& x);

}  // namespace tessera::io
