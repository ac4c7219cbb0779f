// An array in a file that is read box by box, and the op that stands for it in a graph.
//
// The op has no operands: a rank that computes it reads its block. A streamed program never computes it
// whole, but reads parts of it into leaves.
#pragma once
#include <tessera/io.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/op.hpp"
#include "io/formats/part.hpp"
#include "types/buffer.hpp"

namespace tessera::stream {

// A stored array, on this rank. Reading is safe on a thread of its own.
struct FileSource {
  std::string path, name;  // name: of the dataset or the array in the store
  io::FileInfo info{{}, float32, {}};
  std::vector<std::int64_t> chunks = {};  // empty: not chunked
  double times = 1;  // how often an element is read from the disk for one that is asked for
  // The memory that reading a box of this shape takes besides the box.
  std::function<std::int64_t(const Shape& box)> temporary_bytes;
  // Reads a box into dense memory; throws IoError on this rank alone, beginning with `call`.
  std::function<void(const std::string& call, const Box&, std::byte* out)> read;
  // The box in the system's cache of files, for a short time; nothing if it has to be read. May be empty.
  std::function<Buffer(const Box&)> mapped = {};
};
using FileSourcePtr = std::shared_ptr<const FileSource>;
// Opens a file on this rank, the format by its contents: npy, HDF5 or netCDF-4, Zarr.
FileSourcePtr source_of(const std::string& call, const std::string& path, const std::string& name,
                        bool other_files);

struct FileParams {
  std::string path, name;
  std::int64_t opening = 0;  // a number for each call of open: a path may lead to another file later
  Dtype dtype;
  std::vector<std::int64_t> start, step, count;  // the part of the stored array
  FileSourcePtr source = nullptr;
  template <class V> void fields(V&& visit) const {
    visit("path", path);
    visit("name", name);
    visit("opening", opening);
    visit("dtype", dtype);
    visit("start", start);
    visit("step", step);
    visit("count", count);
  }
};
bool is_file(const Node&);
Array record_file(FileParams);
// A source that is opened by the call, as a whole.
Array record_opened(FileSourcePtr);
// Reads a box of the node's array, on this rank.
void read_file(const FileParams&, const std::string& call, const Box&, std::byte* out);
// The same without a copy; nothing if it has to be read.
Buffer mapped_file(const FileParams&, const Box&);
// Reads a box whose indices along the dim are these places, in any order; zeros for places below 0.
// Neighbours are read together, with gaps that cost less than a call.
void read_places(const FileParams&, const std::string& call, int dim, std::span<const std::int64_t> places,
                 const Box&, std::byte* out);
// The part of the array at these places.
FileSourcePtr source_at(const FileParams&, int dim, std::vector<std::int64_t> places);
// The memory that reading a box takes besides the box itself.
std::int64_t reading_bytes(const FileParams&, const Shape& box);
std::int64_t reading_bytes_at(const FileParams&, int dim, const Shape& box);
// How often an element is read where the array is read in blocks of this length along a dim: stored chunks
// are read whole, and short runs with the gaps between them. At least 1.
double times_read(const FileParams&, int dim, std::int64_t block);

}  // namespace tessera::stream
