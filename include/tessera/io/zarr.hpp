/// @file
/// Zarr: arrays as folders of chunks, which xarray, zarr-python and others read.
///
/// **Collective** over all ranks of the runtime, unless said otherwise, and errors are the same on all, as in
/// io.hpp. Version 3 is written, versions 2 and 3 are read. Each rank packs and writes whole chunks, without
/// locks; where a chunk has elements on several ranks, the one that has most of it receives the others'
/// parts. A store, or an array in it, is replaced whole or not at all, also when the job is killed.
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

/// What an attribute of a group or an array holds: a number, a text, or a list of them.
using Attribute = Hdf5Attribute;

/// How a new array is stored.
struct ZarrOptions {
  std::vector<std::int64_t> chunks =
      {};  ///< extents of what is packed as one; {}: of the array's shards, at most 64 MiB
  std::vector<std::int64_t> shards =
      {};  ///< extents of what is one file, multiples of chunks; {}: a file for each chunk
  std::string compression = "zstd";    ///< zstd, gzip, blosc (with lz4), blosc-zstd, or none
  std::optional<int> level = {};       ///< of the compression; nullopt: 1 of zstd and gzip, 5 of Blosc
  bool checksum = false;               ///< a CRC-32C behind each chunk
  std::vector<std::string> dims = {};  ///< names of the dimensions; "" for one without
  std::optional<double> fill = {};     ///< of what is nowhere stored; nullopt: 0
};
/// Options of load_zarr.
struct ZarrLoadOptions {
  /// A part of the array alone, a slice for each of its first dims: {slice(100, 200), slice(0, 50)}. Steps
  /// must be positive; those above 1 read what is between as well. The sharding splits that part.
  std::vector<Slice> slices = {};
};

/// Writes an array as a store of its own, in place of what was there. Collective over all ranks. Refused
/// where the path is a folder that holds something else.
void save_zarr(const std::string& path, const Array& x, const ZarrOptions& options = {},
               std::source_location where = std::source_location::current());
/// Writes a store with several arrays, "group/x" in groups, in place of what was there. Collective over all
/// ranks.
void save_zarr(const std::string& path, const std::map<std::string, Array>& arrays,
               const ZarrOptions& options = {}, std::source_location where = std::source_location::current());
/// Reads an array: committed to the sharding, each rank its own block; without one uncommitted, every rank
/// all of it. The path is that of the array's folder: "run.zarr", "run.zarr/group/x". Collective over all
/// ranks; nothing is sent. Chunks of any shape; codecs bytes, transpose, sharding_indexed, crc32c, zstd,
/// gzip, blosc, of version 2 also zlib; IoError for others, and for what is damaged, with the file.
Array load_zarr(const std::string& path, const Sharding& sharding, const ZarrLoadOptions& options = {},
                std::source_location where = std::source_location::current());
Array load_zarr(const std::string& path, const ZarrLoadOptions& options = {},
                std::source_location where = std::source_location::current());
/// What an array holds, from its metadata. Not collective.
FileInfo zarr_info(const std::string& path, std::source_location where = std::source_location::current());
/// The arrays of a store by their paths in it; "" where the store is an array. Not collective.
std::map<std::string, FileInfo> zarr_arrays(const std::string& path,
                                            std::source_location where = std::source_location::current());
/// The names of an array's dimensions, "" for one without; none where no dimension has one. Not collective.
std::vector<std::string> zarr_dims(const std::string& path,
                                   std::source_location where = std::source_location::current());
/// The attributes of an array or a group that are numbers, texts or lists of them. Not collective.
std::map<std::string, Attribute> zarr_attributes(
    const std::string& path, std::source_location where = std::source_location::current());
/// All attributes, as a JSON object. Not collective.
std::string zarr_attributes_json(const std::string& path,
                                 std::source_location where = std::source_location::current());
/// The metadata of an array as Zarr's version 3 says them, as JSON: chunks, codecs, the fill value. Not
/// collective.
std::string zarr_metadata_json(const std::string& path,
                               std::source_location where = std::source_location::current());

/// What Zarr does where the store exists. append: what it holds is kept. replace: a new store takes its place
/// at close(). fail: IoError.
enum class ZarrOpen { append, replace, fail };
/// Options of Zarr.
struct ZarrOpenOptions {
  ZarrOpen mode = ZarrOpen::append;  ///< where the store exists
};

/// Writes a store array by array.
///
///     io::Zarr out("run.zarr");
///     out.attribute("", "viscosity", 0.01);
///     for (...) out.append("velocity", expand_dims(u, 0), 0);  // costs what u costs
///     out.close();
///
/// In a store that exists each call is done whole or not at all, and others can read in between: an array
/// that is appended to has its old length until the new chunks are on the disk, and one that is overwritten
/// its old values. A new store has its name from flush() or close() on; without them nothing stays of it.
class Zarr {
 public:
  /// Opens or makes the store. Other saves to it wait until it is closed. IoError: no folder, something else
  /// than a store of version 3, or one that exists where the mode is fail.
  explicit Zarr(const std::string& path, ZarrOpenOptions options = {},
                std::source_location where = std::source_location::current());
  ~Zarr();
  /// The writer goes on in the new place; the old one can only be destroyed.
  Zarr(Zarr&& other) noexcept;
  Zarr(const Zarr&) = delete;
  Zarr& operator=(const Zarr&) = delete;

  /// Makes an array, or replaces the one of that name; groups on the way to it are made.
  void write(const std::string& name, const Array& x, const ZarrOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Adds x behind what an array holds, along a dim; makes the array when it is not there, and only then
  /// looks at the options. Reads and writes again the chunks that were not full, and no others. ShapeError
  /// where the other extents differ, DtypeError for another dtype.
  void append(const std::string& name, const Array& x, int dim, const ZarrOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Puts x into an array, from the element `start` on. Chunks that x fills in part are read
  /// and written again.
  void overwrite(const std::string& name, const Array& x, const std::vector<std::int64_t>& start,
                 std::source_location where = std::source_location::current());
  /// Makes a group, and those on the way to it. One that is there stays.
  void group(const std::string& name, std::source_location where = std::source_location::current());
  /// Sets an attribute of an array, a group or the store (""); an old one of that name is replaced.
  void attribute(const std::string& name, const std::string& key, const Attribute& value,
                 std::source_location where = std::source_location::current());
  /// Sets all attributes to those of a JSON object.
  void attributes_json(const std::string& name, const std::string& json,
                       std::source_location where = std::source_location::current());
  /// A new store gets its name, with consolidated metadata; in an old one those are brought up to date.
  void flush(std::source_location where = std::source_location::current());
  /// flush(), and others may write; nothing can be written afterwards.
  void close(std::source_location where = std::source_location::current());

 private:
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tessera::io
