/// @file
/// An HDF5 file that stays open: datasets that grow, groups, attributes.
///
/// **Collective** over all ranks of the runtime, and errors are the same on all, as in io.hpp. Every rank
/// writes its own blocks. What is written stands under a temporary name beside the target until flush() or
/// close() gives it the final one: under that name there is the old file or a whole new one at any moment,
/// also when the job is killed. A writer that is destroyed without close(), as by an exception, leaves what
/// stood there at the last flush().
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <variant>
#include <vector>

#include <tessera/io.hpp>

namespace tessera::io {

/// The value of an attribute: a number, a text, or a list of them.
using Hdf5Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                   std::vector<double>, std::vector<std::string>>;

/// The way of Hdf5Writer with a file that exists. append: what it holds is kept (the file is copied once,
/// when it is opened). replace: a new file takes its place. fail: IoError.
enum class Hdf5Open { append, replace, fail };
/// Options of Hdf5Writer.
struct Hdf5WriterOptions {
  Hdf5Open mode = Hdf5Open::append;  ///< where the file exists
};
/// Options of a dataset that is made.
struct Hdf5DatasetOptions {
  int compression = 0;  ///< deflate: 1 (fast) to 9 (small); 0: none
  bool shuffle = true;  ///< all first bytes, then all second ones: numbers become smaller
  Shape chunk = {};     ///< of a dataset that grows or is compressed: what is stored as one piece; {}: chosen
};

/// Writes one file, piece by piece.
///
///     io::Hdf5Writer out("run.h5", {.mode = io::Hdf5Open::replace});
///     out.attribute("/", "viscosity", 0.01);
///     for (...) out.append("velocity", expand_dims(u, 0));  // costs what u costs, not what the file does
///     out.close();
///
/// A mistake (a name that is taken, another shape) leaves the writer as it was. After a failure in the midst
/// of a write (a full disk) it refuses everything, and the file stays as it was at the last flush().
class Hdf5Writer {
 public:
  /// Opens the file. Other saves to it wait until it is closed. IoError: no folder, no HDF5 file, or a file
  /// that exists where the mode is fail.
  explicit Hdf5Writer(const std::string& path, Hdf5WriterOptions options = {},
                      std::source_location where = std::source_location::current());
  ~Hdf5Writer();
  /// The writer goes on in the new place; the old one can only be destroyed.
  Hdf5Writer(Hdf5Writer&& other) noexcept;
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  /// Makes a dataset of this shape; groups on the way to it are made. IoError if it is there already.
  void write(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Adds x behind what a dataset holds, along its first dim; makes the dataset, which can grow without
  /// limit, when it is not there, and only then looks at the options. Writes what x holds; of a compressed
  /// dataset the rows of its last chunk again, when they did not fill it. ShapeError where the other extents
  /// differ, DtypeError for another dtype; IoError for a dataset of others that cannot grow, or has a filter
  /// other than deflate and shuffle.
  void append(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Makes a group, and those on the way to it. One that is there stays.
  void group(const std::string& path, std::source_location where = std::source_location::current());
  /// Sets an attribute of a dataset, a group or the file ("/"); an old one of that name is replaced. IoError
  /// where there is no such object, or for more than the 64 KiB that the format allows.
  void attribute(const std::string& object, const std::string& name, const Hdf5Attribute& value,
                 std::source_location where = std::source_location::current());
  /// Puts what was written so far under the final name, on the disk. Costs a copy of the file by one rank, or
  /// nothing where the file system lets files share their blocks (XFS, Btrfs).
  void flush(std::source_location where = std::source_location::current());
  /// flush() without the copy; nothing can be written afterwards.
  void close(std::source_location where = std::source_location::current());

 private:
  friend class Netcdf;
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

/// The attributes of a dataset, a group or the file ("/") that are numbers or texts; arrays of several dims
/// as lists. Not collective.
std::map<std::string, Hdf5Attribute> hdf5_attributes(
    const std::string& path, const std::string& object = "/",
    std::source_location where = std::source_location::current());

}  // namespace tessera::io
