/// @file
/// Zarr: arrays as folders of chunks, which xarray, zarr-python and others read.
///
/// **Collective** over all ranks of the runtime, unless stated otherwise, and errors are the same on all, as
/// in io.hpp. Version 3 is written, versions 2 and 3 are read. Each rank packs and writes whole chunks,
/// without locks; if a chunk has elements on several ranks, the one with most of it receives the others'
/// parts. A store, or an array in it, is replaced completely or not at all, even if the job is killed.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/io/hdf5_writer.hpp>

namespace tessera::io {

/// The value of an attribute of a group or an array: a number, a text, or a list of them.
using Attribute = Hdf5Attribute;

/// The storage of a new array.
struct ZarrOptions {
  std::vector<std::int64_t> chunks =
      {};  ///< extents of a chunk; {}: those of the array's shards, at most 64 MiB
  std::vector<std::int64_t> shards =
      {};  ///< extents of the part in one file, multiples of chunks; {}: a file for each chunk
  std::string compression = "zstd";    ///< zstd, gzip, blosc (with lz4), blosc-zstd, or none
  std::optional<int> level = {};       ///< of the compression; nullopt: 1 for zstd and gzip, 5 for Blosc
  bool checksum = false;               ///< a CRC-32C after each chunk
  std::vector<std::string> dims = {};  ///< names of the dims; "" for an unnamed one
  std::optional<double> fill = {};     ///< the value of elements that are not stored; nullopt: 0
};
/// Options of load_zarr.
struct ZarrLoadOptions {
  /// Reads only a part of the array, one slice for each of its first dims: {slice(100, 200), slice(0, 50)}.
  /// Steps must be positive; steps above 1 also read the elements in between. The sharding splits that part.
  std::vector<Slice> slices = {};
};

/// Writes an array as a store of its own, replacing an existing store. Collective over all ranks. Refused if
/// the path is a folder with other contents.
void save_zarr(const std::string& path, const Array& x, const ZarrOptions& options = {},
               std::source_location where = std::source_location::current());
/// Writes a store with several arrays, "group/x" in groups, replacing an existing store. Collective over all
/// ranks.
void save_zarr(const std::string& path, const std::map<std::string, Array>& arrays,
               const ZarrOptions& options = {}, std::source_location where = std::source_location::current());
/// Reads an array: with a sharding a committed array, each rank reading its own block; without one
/// uncommitted, every rank reading all of it. The path is the array's folder: "run.zarr", "run.zarr/group/x".
/// Collective over all ranks; nothing is sent. Chunks of any shape; codecs bytes, transpose,
/// sharding_indexed, crc32c, zstd, gzip, blosc, for version 2 also zlib; IoError for others, and for damaged
/// files, with the file.
Array load_zarr(const std::string& path, const Sharding& sharding, const ZarrLoadOptions& options = {},
                std::source_location where = std::source_location::current());
Array load_zarr(const std::string& path, const ZarrLoadOptions& options = {},
                std::source_location where = std::source_location::current());
/// Shape, dtype and format of an array, from its metadata. Not collective.
FileInfo zarr_info(const std::string& path, std::source_location where = std::source_location::current());
/// The arrays of a store by their paths in it; "" if the store is an array. Not collective.
std::map<std::string, FileInfo> zarr_arrays(const std::string& path,
                                            std::source_location where = std::source_location::current());
/// The names of an array's dims, "" for an unnamed one; empty if no dim has a name. Not collective.
std::vector<std::string> zarr_dims(const std::string& path,
                                   std::source_location where = std::source_location::current());
/// The attributes of an array or a group that are numbers, texts or lists of them. Not collective.
std::map<std::string, Attribute> zarr_attributes(
    const std::string& path, std::source_location where = std::source_location::current());
/// All attributes, as a JSON object. Not collective.
std::string zarr_attributes_json(const std::string& path,
                                 std::source_location where = std::source_location::current());
/// The metadata of an array in the form of Zarr's version 3, as JSON: chunks, codecs, the fill value. Not
/// collective.
std::string zarr_metadata_json(const std::string& path,
                               std::source_location where = std::source_location::current());

/// The treatment of an existing store by Zarr. append: keeps its contents. replace: a new store replaces it
/// at close(). fail: IoError.
enum class ZarrOpen { append, replace, fail };
/// Options of Zarr.
struct ZarrOpenOptions {
  ZarrOpen mode = ZarrOpen::append;  ///< if the store exists
};

/// Writes a store array by array.
///
///     io::Zarr out("run.zarr");
///     out.attribute("", "viscosity", 0.01);
///     for (...) out.append("velocity", expand_dims(u, 0), 0);  // costs the size of u
///     out.close();
///
/// In an existing store each call takes effect completely or not at all, and others can read in between: an
/// array that is appended to keeps its old length until the new chunks are on the disk, and one that is
/// overwritten its old values. A new store gets its name at flush() or close(); without them nothing remains
/// of it.
class Zarr {
 public:
  /// Opens or creates the store. Other saves to it wait until it is closed. IoError: no folder, not a store
  /// of version 3, or an existing one with mode fail.
  explicit Zarr(const std::string& path, ZarrOpenOptions options = {},
                std::source_location where = std::source_location::current());
  ~Zarr();
  /// Moves the writer; the moved-from object can only be destroyed.
  Zarr(Zarr&& other) noexcept;
  Zarr(const Zarr&) = delete;
  Zarr& operator=(const Zarr&) = delete;

  /// Creates an array, or replaces the one of that name; missing groups are created.
  void write(const std::string& name, const Array& x, const ZarrOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Appends x to an array along a dim; creates the array if it does not exist, and uses the options only
  /// then. Only chunks that were not full are read and written again. ShapeError if the other extents differ,
  /// DtypeError for another dtype.
  void append(const std::string& name, const Array& x, int dim, const ZarrOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Overwrites a part of an array with x, from the element `start` on. Chunks that x covers partly are read
  /// and written again.
  void overwrite(const std::string& name, const Array& x, const std::vector<std::int64_t>& start,
                 std::source_location where = std::source_location::current());
  /// Creates a group, and missing groups above it. An existing one is kept.
  void group(const std::string& name, std::source_location where = std::source_location::current());
  /// Sets an attribute of an array, a group or the store (""), replacing an old one of that name.
  void attribute(const std::string& name, const std::string& key, const Attribute& value,
                 std::source_location where = std::source_location::current());
  /// Sets all attributes to those of a JSON object.
  void attributes_json(const std::string& name, const std::string& json,
                       std::source_location where = std::source_location::current());
  /// Gives a new store its name and writes consolidated metadata; in an existing store updates them.
  void flush(std::source_location where = std::source_location::current());
  /// flush(), then releases the store for other writers; afterwards nothing can be written.
  void close(std::source_location where = std::source_location::current());

 private:
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::io
