/// @file
/// Files: every rank reads and writes only its own blocks; nothing passes through one rank.
///
/// **Collective** over all ranks of the runtime, unless said otherwise: one outside the sharding gets a
/// handle like the others, and takes part in every error. What the ranks are asked for (path, dataset,
/// layout) is agreed before a file is opened. Beyond a few bytes of agreement nothing is sent, but where a
/// save brings narrow columns into rows first.
///
/// **Errors.** A failure on any rank is an IoError on every rank, with the same text. A save writes under a
/// temporary name beside the target, checks what was written, and renames: under the final name there is
/// the old file or the new one, never a part. A load raises IoError for what is refused or damaged, and
/// ShardingError for a spec that does not fit the shape.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/tree.hpp>

namespace tessera::io {

/// @name NumPy
/// @{

/// Writes an .npy file, version 1.0 in C order. Collective over all ranks.
void save_npy(const std::string& path, const Array& x,
              std::source_location where = std::source_location::current());
/// Reads an .npy file: committed to the sharding, each rank its own block; without one uncommitted, every
/// rank all of it. Collective over all ranks. Versions 1 to 3, C and Fortran order, either byte order;
/// bool, integers, float32/64, complex64/128. Refused: objects (they would have to be unpickled),
/// structures, strings, float16, longdouble.
Array load_npy(const std::string& path, const Sharding& sharding,
               std::source_location where = std::source_location::current());
Array load_npy(const std::string& path, std::source_location where = std::source_location::current());
/// @}

/// What a file holds.
struct FileInfo {
  Shape shape;         ///< extents
  Dtype dtype;         ///< element type of the array that a load gives
  std::string detail;  ///< "npy 1.0, C order"
};
/// What an .npy file holds, from its header. Not collective.
FileInfo npy_info(const std::string& path, std::source_location where = std::source_location::current());

/// @name HDF5
/// @{

/// What save_hdf5 does where the file exists. append: adds the dataset; IoError if it is there already.
/// replace: the dataset gets the new values, the others stay. fail: IoError if there is a file.
enum class Hdf5Mode { append, replace, fail };
/// Options of save_hdf5.
struct Hdf5SaveOptions {
  Hdf5Mode mode = Hdf5Mode::append;  ///< where the file exists
};
/// Options of load_hdf5.
struct Hdf5LoadOptions {
  /// A foreign file may name other files to read from: raw data outside, virtual datasets, external links.
  /// Without this that is an IoError.
  bool other_files = false;
};
/// Writes a dataset of an HDF5 file; its groups are made when missing. Collective over all ranks. An
/// existing file keeps its other datasets (it is copied first, so that a failure leaves it as it was). bool
/// and complex as h5py writes them.
void save_hdf5(const std::string& path, const std::string& dataset, const Array& x, Hdf5SaveOptions = {},
               std::source_location where = std::source_location::current());
/// Reads a dataset: committed to the sharding, each rank its own block; without one uncommitted, every rank
/// all of it. Collective over all ranks. Any storage layout and filter that the HDF5 library has.
Array load_hdf5(const std::string& path, const std::string& dataset, const Sharding& sharding,
                Hdf5LoadOptions = {}, std::source_location where = std::source_location::current());
Array load_hdf5(const std::string& path, const std::string& dataset, Hdf5LoadOptions = {},
                std::source_location where = std::source_location::current());
/// What a dataset holds. Not collective.
FileInfo hdf5_info(const std::string& path, const std::string& dataset,
                   std::source_location where = std::source_location::current());
/// The paths of all datasets. Not collective.
std::vector<std::string> hdf5_datasets(const std::string& path,
                                       std::source_location where = std::source_location::current());
/// @}

/// @name Matrix Market
/// @{

/// Reads Matrix Market into a dense array: committed to the sharding, or uncommitted without one.
/// Collective over all ranks. Array and coordinate; real (float64), integer (int64), complex (complex128),
/// pattern (ones); general, symmetric, skew-symmetric, hermitian. Entries of a coordinate file that stand
/// twice are added up. Every rank reads the text and keeps its own block.
Array load_matrix_market(const std::string& path, const Sharding& sharding,
                         std::source_location where = std::source_location::current());
Array load_matrix_market(const std::string& path,
                         std::source_location where = std::source_location::current());
/// What a Matrix Market file holds, from its header. Not collective.
FileInfo matrix_market_info(const std::string& path,
                            std::source_location where = std::source_location::current());
/// @}

/// Trees of arrays under dir/step_00000042/: one file per rank, checksummed by pieces of 1 MiB, and
/// manifest.json, written last.
namespace checkpoint {

namespace detail {
void save_leaves(const std::string& dir, int step, const std::vector<Array>& leaves,
                 const std::string& structure, std::source_location);
std::vector<Array> restore_leaves(const std::string& dir, std::optional<int> step,
                                  const std::vector<Array>& like, const std::string& structure,
                                  std::source_location);
}  // namespace detail

/// Writes a tree. Collective over all ranks. The step appears under its name only when every rank's file is
/// on the disk. IoError if it exists.
template <class Tree> void save(const std::string& dir, int step, const Tree& tree,
                                std::source_location where = std::source_location::current()) {
  detail::save_leaves(dir, step, tree_leaves(tree), tessera::detail::structure_of(tree), where);
}
/// Reads the latest (or the given) step, each leaf with the shape, dtype and sharding of its counterpart in
/// `like`, which may lie on another mesh than the one that was saved; numbers are taken from `like`.
/// Collective over all ranks. Each rank reads the pieces it needs and checks their sums. A latest step that
/// is damaged is passed over, with a warning, for the newest one that is whole; one that was asked for by
/// its number is not. IoError: no step, no whole one, other structure, shapes or dtypes.
template <class Tree> Tree restore(const std::string& dir, const Tree& like,
                                   std::optional<int> step = std::nullopt,
                                   std::source_location where = std::source_location::current()) {
  return tessera::detail::with_leaves(
      like, detail::restore_leaves(dir, step, tree_leaves(like), tessera::detail::structure_of(like), where));
}
/// The latest of the steps whose manifest is right and whose files are there in full length; nullopt if
/// there is none. Not collective, and the data are not read.
std::optional<int> latest_step(const std::string& dir,
                               std::source_location where = std::source_location::current());
/// The step that restore takes when none is given: the newest whose sums are all right. Collective over all
/// ranks, which share the reading.
std::optional<int> latest_whole_step(const std::string& dir,
                                     std::source_location where = std::source_location::current());

}  // namespace checkpoint

}  // namespace tessera::io
