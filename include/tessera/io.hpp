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
#include <map>
#include <memory>
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
/// bool, integers, float16/32/64, complex64/128; bfloat16 as ml_dtypes has it, which NumPy's format calls two
/// raw bytes ('<V2'). Refused: objects (they would have to be unpickled), structures, strings, longdouble.
Array load_npy(const std::string& path, const Sharding& sharding,
               std::source_location where = std::source_location::current());
Array load_npy(const std::string& path, std::source_location where = std::source_location::current());
/// @}

/// The shape, dtype and format of a file.
struct FileInfo {
  Shape shape;         ///< extents
  Dtype dtype;         ///< element type of the array that a load gives
  std::string detail;  ///< "npy 1.0, C order"
};
/// The contents of an .npy file, from its header. Not collective.
FileInfo npy_info(const std::string& path, std::source_location where = std::source_location::current());

/// @name Several arrays in one file
/// @{

/// Writes an .npz file as numpy.savez does: a zip archive of .npy files, not deflated, with checksums.
/// Collective over all ranks. Each array is brought into rows first, so that a rank writes one piece of it.
void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              std::source_location where = std::source_location::current());
/// Reads one array of an .npz file, as load_npy does. Collective over all ranks. Of numpy.savez_compressed's
/// files every rank unpacks the whole array and keeps its block, and the checksum is looked at.
Array load_npz(const std::string& path, const std::string& array, const Sharding& sharding,
               std::source_location where = std::source_location::current());
Array load_npz(const std::string& path, const std::string& array,
               std::source_location where = std::source_location::current());
/// The arrays of an .npz file, from their headers. Not collective.
std::map<std::string, FileInfo> npz_info(const std::string& path,
                                         std::source_location where = std::source_location::current());

/// Writes a .safetensors file, with texts of one's own. Collective over all ranks. DtypeError for
/// complex128, which the format does not have.
void save_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                      const std::map<std::string, std::string>& metadata = {},
                      std::source_location where = std::source_location::current());
/// Reads one tensor: committed to the sharding, each rank its own block; without one uncommitted, every
/// rank all of it. Collective over all ranks. F16 and BF16 are float16 and bfloat16. IoError for dtypes that
/// tessera does not have (F8), and for files whose tensors overlap or leave holes.
Array load_safetensors(const std::string& path, const std::string& tensor, const Sharding& sharding,
                       std::source_location where = std::source_location::current());
Array load_safetensors(const std::string& path, const std::string& tensor,
                       std::source_location where = std::source_location::current());
/// The tensors of a .safetensors file, from its header. Not collective.
std::map<std::string, FileInfo> safetensors_info(
    const std::string& path, std::source_location where = std::source_location::current());
/// The texts that were saved beside the tensors. Not collective.
std::map<std::string, std::string> safetensors_metadata(
    const std::string& path, std::source_location where = std::source_location::current());
/// @}

/// @name CSV
/// @{

/// How a CSV file looks.
struct CsvOptions {
  char delimiter = ',';                  ///< between the numbers of a row
  std::vector<std::string> header = {};  ///< to write: the names of the columns
  Dtype dtype = float64;                 ///< to read: of the array. No complex one
};
/// Writes numbers as text, a row to a line, that read back to the same bits; a vector is one column.
/// Collective over all ranks, which write their own rows (columns that are split are brought into rows
/// first). ShapeError for more than two dims, or a header of another length; DtypeError for complex numbers.
void save_csv(const std::string& path, const Array& x, const CsvOptions& options = {},
              std::source_location where = std::source_location::current());
/// Reads a table of numbers: a matrix committed to the sharding, or uncommitted without one. Collective
/// over all ranks: each looks through the text for the ends of lines, and reads the numbers of its own
/// rows. A first line of names is a header, and one that begins with #; a first line of names and numbers is
/// refused, because it may be either (names that look like numbers stand in quotes). Empty fields, NA, N/A
/// and null are NaN. IoError, with the line, for rows of different lengths, what is no number of the dtype,
/// and lines of more than 64 MiB.
Array load_csv(const std::string& path, const Sharding& sharding, const CsvOptions& options = {},
               std::source_location where = std::source_location::current());
Array load_csv(const std::string& path, const CsvOptions& options = {},
               std::source_location where = std::source_location::current());
/// The contents of a CSV file; the lines are counted. Not collective.
FileInfo csv_info(const std::string& path, const CsvOptions& options = {},
                  std::source_location where = std::source_location::current());
/// The names of the columns, of a file that has a header; otherwise none. Not collective.
std::vector<std::string> csv_header(const std::string& path, const CsvOptions& options = {},
                                    std::source_location where = std::source_location::current());
/// @}

/// @name HDF5
/// @{

/// The way of save_hdf5 with a file that exists. append: adds the dataset; IoError if it is there already.
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
  /// A part of the dataset alone, a slice for each of its first dims: {slice(100, 200), slice(0, None, 4)}.
  /// Steps must be positive. Only that part is read, and it is what the sharding splits.
  std::vector<Slice> slices = {};
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
/// The contents of a dataset. Not collective.
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
/// How save_matrix_market writes.
struct MatrixMarketOptions {
  bool coordinate = false;  ///< only the entries that are not zero, each with its place; else all of them
};
/// Writes a matrix as Matrix Market text that reads back to the same bits: integer, real or complex,
/// general. Collective over all ranks, which write their own columns (or rows, of coordinates). ShapeError
/// unless x has two dims; DtypeError for uint64, of which the format has no numbers.
void save_matrix_market(const std::string& path, const Array& x, const MatrixMarketOptions& options = {},
                        std::source_location where = std::source_location::current());
/// The contents of a Matrix Market file, from its header. Not collective.
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
/// its number is not. A step that cannot be read for another reason (EIO, ESTALE, permissions) is tried four
/// times in two seconds and is then an error: no older one is taken for it. In a folder that a Manager of
/// this job saves in, what was passed over is renamed to step_N.damaged. IoError: no step, no whole one, none
/// that can be read, other structure, shapes or dtypes.
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
