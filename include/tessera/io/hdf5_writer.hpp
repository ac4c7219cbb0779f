/// @file
/// An HDF5 file that stays open: datasets that grow, groups, attributes.
///
/// **Collective** over all ranks of the runtime, and errors are the same on all, as in io.hpp. Every rank
/// writes its own blocks. Data are written under a temporary name beside the target until flush() or close()
/// gives the file its final name: that name always has the old file or a complete new one, even if the job is
/// killed. A writer that is destroyed without close(), as by an exception, leaves the file of the last
/// flush().
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

/// The treatment of an existing file by Hdf5Writer. append: keeps its contents (the file is copied once, on
/// opening). replace: a new file replaces it. fail: IoError.
enum class Hdf5Open { append, replace, fail };
/// Options of Hdf5Writer.
struct Hdf5WriterOptions {
  Hdf5Open mode = Hdf5Open::append;  ///< if the file exists
};
/// Options of a new dataset.
struct Hdf5DatasetOptions {
  int compression = 0;  ///< deflate: 1 (fast) to 9 (small); 0: none
  bool shuffle = true;  ///< groups bytes by significance before compression, which shrinks numbers
  Shape chunk = {};     ///< for a dataset that grows or is compressed: extents of a stored chunk; {}: chosen
};

/// Writes one file, piece by piece.
///
///     io::Hdf5Writer out("run.h5", {.mode = io::Hdf5Open::replace});
///     out.attribute("/", "viscosity", 0.01);
///     for (...) out.append("velocity", expand_dims(u, 0));  // costs the size of u, not of the file
///     out.close();
///
/// A mistake (a name in use, another shape) leaves the writer unchanged. After a failure during a write (a
/// full disk) it refuses all calls, and the file is that of the last flush().
class Hdf5Writer {
 public:
  /// Opens the file. Other saves to it wait until it is closed. IoError: no folder, not an HDF5 file, or an
  /// existing file with mode fail.
  explicit Hdf5Writer(const std::string& path, Hdf5WriterOptions options = {},
                      std::source_location where = std::source_location::current());
  ~Hdf5Writer();
  /// Moves the writer; the moved-from object can only be destroyed.
  Hdf5Writer(Hdf5Writer&& other) noexcept;
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  /// Creates a dataset of this shape, and missing groups. IoError if it exists already.
  void write(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Appends x to a dataset along its first dim; creates the dataset, which can grow without limit, if it
  /// does not exist, and uses the options only then. Writes x's elements; for a compressed dataset also the
  /// rows of its last chunk if that was not full. ShapeError if the other extents differ, DtypeError for
  /// another dtype; IoError for a dataset from elsewhere that cannot grow, or has a filter other than deflate
  /// and shuffle.
  void append(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Creates a group, and missing groups above it. An existing one is kept.
  void group(const std::string& path, std::source_location where = std::source_location::current());
  /// Sets an attribute of a dataset, a group or the file ("/"), replacing an old one of that name. IoError if
  /// there is no such object, or for more than the 64 KiB that the format allows.
  void attribute(const std::string& object, const std::string& name, const Hdf5Attribute& value,
                 std::source_location where = std::source_location::current());
  /// Makes the data written so far visible under the final name, on the disk. Costs a copy of the file by one
  /// rank, or nothing if the file system lets files share their blocks (XFS, Btrfs).
  void flush(std::source_location where = std::source_location::current());
  /// flush() without the copy; afterwards nothing can be written.
  void close(std::source_location where = std::source_location::current());

 private:
  friend class Netcdf;
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

/// The attributes of a dataset, a group or the file ("/") that are numbers or texts; arrays of several dims
/// are flattened to lists. Not collective.
std::map<std::string, Hdf5Attribute> hdf5_attributes(
    const std::string& path, const std::string& object = "/",
    std::source_location where = std::source_location::current());

}  // namespace tessera::io
