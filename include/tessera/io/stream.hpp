/// @file
/// Arrays larger than memory: files that are opened without being loaded, and programs on them.
///
///     const auto t2m = io::open("era5.nc", {.name = "t2m"});  // float32 (time, lat, lon); nothing is read
///     const Array mean = io::compute(tessera::mean(t2m, 0));  // reads the file once, slab by slab
///     io::store("anomaly.npy", t2m - mean);                   // reads it again, and writes
///
/// A program is streamed along one dim: a slab of it is in memory at a time, while the next one is read and
/// the last one is written. The dim is one that the ops of the program pass through, as their sharding
/// rules say; what is summed over it (also products, extrema, the k largest, A^T A) is combined from the
/// slabs' parts. A value that needs such a result costs another pass over the files. Of selected rows
/// (x[[3, 17]], slices, masks) only these are read.
///
/// **Collective** over all ranks of the runtime, and errors are the same on all, as in io.hpp.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/io.hpp>

namespace tessera::io {

/// Options of open.
struct OpenOptions {
  std::string name = "";     ///< of the HDF5 dataset, the netCDF variable, or the array in a Zarr store
  bool unpack = true;        ///< of packed netCDF variables, as load_netcdf does
  bool other_files = false;  ///< an HDF5 file may refer to other files
};

/// An array in a file: shape, dtype and chunks are known, nothing is loaded. It is an Array: ops on it are
/// recorded, compute and store stream them; evaluated in another way (to_vector, print) it is loaded.
class FileArray : public Array {
 public:
  struct State;
  /// For open.
  explicit FileArray(std::shared_ptr<const State> state);
  const std::string& path() const;                  ///< the file
  const std::string& detail() const;                ///< format: "npy 1.0, C order"
  const std::vector<std::int64_t>& chunks() const;  ///< extents of a stored chunk; empty if the file has none
  /// A part of the array, one slice for each of its first dims; steps must be positive. Not collective:
  /// nothing is read. IndexError for more slices than dims and for steps below 1.
  FileArray part(const std::vector<Slice>& slices,
                 std::source_location where = std::source_location::current()) const;
  /// The values: committed to the sharding, each rank reading its own block; without one uncommitted, every
  /// rank reading all of them. Collective over all ranks. MemoryError if they do not fit.
  Array load(const Sharding& sharding, std::source_location where = std::source_location::current()) const;
  Array load(std::source_location where = std::source_location::current()) const;

 private:
  std::shared_ptr<const State> state_;
};
/// to_string(x); the values are not read.
std::ostream& operator<<(std::ostream&, const FileArray& x);
std::string to_string(const FileArray&);  ///< float32[100,200] in 'x.npy', npy 1.0, C order

/// Opens an array in a .npy, HDF5, netCDF-4 or Zarr file (told by its contents) and reads its header.
/// Collective over all ranks. IoError for other files, for a name that is not there, and for headers that
/// ranks see differently.
FileArray open(const std::string& path, const OpenOptions& options = {},
               std::source_location where = std::source_location::current());

/// Options of compute.
struct ComputeOptions {
  /// Bytes that a rank may use for the program, beside what the process has before; 0: TESSERA_MEM_LIMIT, or
  /// the rank's share of its host.
  std::int64_t memory_limit = 0;
  std::int64_t slab = 0;  ///< extent of a slab along the streamed dim; 0: as large as the limit allows
};
/// The values of expressions on files, in memory. Collective over all ranks. Several results share the
/// passes. Sums add up slab by slab, so that their last digits depend on the slabs; in a ReproducibleScope
/// slabs have 2^k indices, at least 64, and sums have the bits that they have in memory. Expressions without
/// files are evaluated. MemoryError, before anything is read, if the program needs more than the limit even
/// with the smallest slab; ArgumentError if each dim of the files is needed whole by some op, with that op
/// and its line.
std::vector<Array> compute(const std::vector<Array>& values, const ComputeOptions& options = {},
                           std::source_location where = std::source_location::current());
Array compute(const Array& value, const ComputeOptions& options = {},
              std::source_location where = std::source_location::current());

/// Options of store.
struct StoreOptions {
  std::string name = "";  ///< of the dataset, variable or array; "" for .npy, and for a store of one array
  std::int64_t memory_limit = 0;  ///< as in compute
  std::int64_t slab = 0;          ///< as in compute
  std::vector<std::string> dims =
      {};  ///< names of the dims, for netCDF and Zarr; netCDF names others dim_0, ...
  std::vector<std::int64_t> chunks = {};  ///< extents of a chunk, for Zarr; {}: a rank's part of a slab
  std::vector<std::int64_t> shards = {};  ///< extents of the part in one file, for Zarr; {}: a chunk
  std::string compression = "zstd";       ///< for Zarr: as in ZarrOptions
};
/// Writes the value of an expression on files to a new file, slab by slab: .npy; HDF5 (.h5, .hdf5) or
/// netCDF-4 (.nc) with one dataset; Zarr (.zarr) with one array, which is the store itself or has the name.
/// Collective over all ranks. The file gets its name when all of it is written: a failure, or a job that is
/// killed, leaves the old file or none. Errors as in compute; IoError if the disk is full; DtypeError for
/// dtypes that netCDF does not have.
void store(const std::string& path, const Array& value, const StoreOptions& options = {},
           std::source_location where = std::source_location::current());
/// One of several results of a program, and its file.
struct StoredResult {
  std::string path;           ///< of the file or store
  Array value;                ///< an expression
  StoreOptions options = {};  ///< without memory_limit and slab, which are those of the program
};
/// Writes several results, which share the passes over the files, as in compute. No file gets its name before
/// all are written. Collective over all ranks. Errors as for one result; ArgumentError for a path that is
/// given twice, and for a limit or a slab of one result.
void store(const std::vector<StoredResult>& results, const ComputeOptions& options = {},
           std::source_location where = std::source_location::current());

/// The plan of a streamed program. Prints as a few lines.
struct StreamPlan {
  std::string streamed;     ///< the dim: "dim 0 of 'x.npy', 1000000 long"; of several stages "..., then ..."
  std::int64_t stages = 1;  ///< each streams its own dim; temporary files are between them
  std::int64_t panels = 1;  ///< of the result, of a product of files: each is a program of its own
  std::int64_t slab = 0;    ///< extent of a slab in the first stage
  std::int64_t slabs = 0;   ///< number of slabs in a pass of the first stage
  std::int64_t passes = 0;  ///< times that files are read
  std::int64_t bytes_read = 0;     ///< by all ranks together, with what lies between short runs
  std::int64_t bytes_written = 0;  ///< by all ranks together
  std::int64_t bytes_spilled = 0;  ///< to temporary files by all ranks together; bytes_read counts them again
  std::int64_t peak_bytes = 0;     ///< of arrays on the busiest rank, beside what lives there before
  std::int64_t limit_bytes = 0;    ///< what a rank may use
  double seconds = 0;  ///< of arithmetic and messages, from the machine's rates; the disk comes on top
};
std::string to_string(const StreamPlan&);  ///< the lines
/// The plan of compute(values, options). Nothing is read. Not collective.
StreamPlan explain_compute(const std::vector<Array>& values, const ComputeOptions& options = {},
                           std::source_location where = std::source_location::current());
/// The plan of store(path, value, options). Not collective.
StreamPlan explain_store(const std::string& path, const Array& value, const StoreOptions& options = {},
                         std::source_location where = std::source_location::current());
/// The plan of store(results, options). Not collective.
StreamPlan explain_store(const std::vector<StoredResult>& results, const ComputeOptions& options = {},
                         std::source_location where = std::source_location::current());

}  // namespace tessera::io
