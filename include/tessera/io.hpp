/// @file
/// Files: every rank reads and writes only its own blocks; nothing passes through one rank.
///
/// **Collective** over all ranks of the runtime, unless stated otherwise: a rank outside the sharding gets
/// the same handle, and takes part in every error. The ranks agree on path, dataset and layout before a file
/// is opened. Nothing else is sent beyond a few bytes of agreement, except when a save reshards narrow
/// columns to rows first.
///
/// **Errors.** A failure on any rank is an IoError on every rank, with the same text. A save writes under a
/// temporary name beside the target, checks the written file, and renames it: the final name always has the
/// old file or the new one, never a part. A load raises IoError for refused or damaged contents, and
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
/// Reads an .npy file: with a sharding a committed array, each rank reading its own block; without one
/// uncommitted, every rank reading all of it. Collective over all ranks. Versions 1 to 3, C and Fortran
/// order, either byte order; bool, integers, float16/32/64, complex64/128; bfloat16 as ml_dtypes writes it,
/// which NumPy's format calls two raw bytes ('<V2'). Refused: objects (they would have to be unpickled),
/// structures, strings, longdouble.
Array load_npy(const std::string& path, const Sharding& sharding,
               std::source_location where = std::source_location::current());
Array load_npy(const std::string& path, std::source_location where = std::source_location::current());
/// load_npy, load_csv or load_matrix_market, by the ending of the name: .npy, .csv or .mtx. Collective over
/// all ranks. ArgumentError for another ending.
Array load(const std::string& path, std::source_location where = std::source_location::current());
/// @}

/// The shape, dtype and format of a file.
struct FileInfo {
  Shape shape;         ///< extents
  Dtype dtype;         ///< element type of the loaded array
  std::string detail;  ///< "npy 1.0, C order"
};
/// The contents of an .npy file, from its header. Not collective.
FileInfo npy_info(const std::string& path, std::source_location where = std::source_location::current());

/// @name Several arrays in one file
/// @{

/// Writes an .npz file as numpy.savez does: a zip archive of .npy files, not deflated, with checksums.
/// Collective over all ranks. Each array is first resharded to rows, so that a rank writes one contiguous
/// part of it.
void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              std::source_location where = std::source_location::current());
/// Reads one array of an .npz file, as load_npy does. Collective over all ranks. For files of
/// numpy.savez_compressed every rank unpacks the whole array and keeps its block; the checksum is verified.
Array load_npz(const std::string& path, const std::string& array, const Sharding& sharding,
               std::source_location where = std::source_location::current());
Array load_npz(const std::string& path, const std::string& array,
               std::source_location where = std::source_location::current());
/// All arrays of an .npz file by their names, each as above. Collective over all ranks.
std::map<std::string, Array> load_npz(const std::string& path,
                                      std::source_location where = std::source_location::current());
/// The arrays of an .npz file, from their headers. Not collective.
std::map<std::string, FileInfo> npz_info(const std::string& path,
                                         std::source_location where = std::source_location::current());

/// Writes a .safetensors file, with optional metadata texts. Collective over all ranks. DtypeError for
/// complex128, which the format does not have.
void save_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                      const std::map<std::string, std::string>& metadata = {},
                      std::source_location where = std::source_location::current());
/// Reads one tensor: with a sharding a committed array, each rank reading its own block; without one
/// uncommitted, every rank reading all of it. Collective over all ranks. F16 and BF16 are float16 and
/// bfloat16. IoError for dtypes that tessera does not have (F8), and for files whose tensors overlap or leave
/// gaps.
Array load_safetensors(const std::string& path, const std::string& tensor, const Sharding& sharding,
                       std::source_location where = std::source_location::current());
Array load_safetensors(const std::string& path, const std::string& tensor,
                       std::source_location where = std::source_location::current());
/// The tensors of a .safetensors file, from its header. Not collective.
std::map<std::string, FileInfo> safetensors_info(
    const std::string& path, std::source_location where = std::source_location::current());
/// The metadata texts of the file. Not collective.
std::map<std::string, std::string> safetensors_metadata(
    const std::string& path, std::source_location where = std::source_location::current());
/// @}

/// @name CSV
/// @{

/// The format of a CSV file.
struct CsvOptions {
  char delimiter = ',';                  ///< between the numbers of a row
  std::vector<std::string> header = {};  ///< for writing: the names of the columns
  Dtype dtype = float64;                 ///< for reading: dtype of the array, not complex
};
/// Writes numbers as text that reads back to the same bits, one row per line; a vector is one column.
/// Collective over all ranks, which write their own rows (split columns are resharded to rows first).
/// ShapeError for more than two dims, or a header of another length; DtypeError for complex numbers.
void save_csv(const std::string& path, const Array& x, const CsvOptions& options = {},
              std::source_location where = std::source_location::current());
/// Reads a table of numbers: a matrix committed to the sharding, or uncommitted without one. Collective over
/// all ranks: each searches the text for line ends, and parses the numbers of its own rows. A first line of
/// names is a header; what follows a # is a comment, as in numpy.loadtxt, and the last one before the table
/// is the header if it has a name for each column. A first line with both names and numbers is refused as
/// ambiguous (quote names that look like numbers). Empty fields, NA, N/A, #N/A and null are NaN. IoError,
/// with the line, for rows of different lengths, for text that is not a number of the dtype, and for lines of
/// more than 64 MiB.
Array load_csv(const std::string& path, const Sharding& sharding, const CsvOptions& options = {},
               std::source_location where = std::source_location::current());
Array load_csv(const std::string& path, const CsvOptions& options = {},
               std::source_location where = std::source_location::current());
/// The contents of a CSV file; counts its lines. Not collective.
FileInfo csv_info(const std::string& path, const CsvOptions& options = {},
                  std::source_location where = std::source_location::current());
/// The names of the columns if the file has a header; otherwise none. Not collective.
std::vector<std::string> csv_header(const std::string& path, const CsvOptions& options = {},
                                    std::source_location where = std::source_location::current());
/// @}

/// @name HDF5
/// @{

/// The treatment of an existing file by save_hdf5. append: adds the dataset; IoError if it exists already.
/// replace: the dataset gets the new values, the others are kept. fail: IoError if the file exists.
enum class Hdf5Mode { append, replace, fail };
/// Options of save_hdf5.
struct Hdf5SaveOptions {
  Hdf5Mode mode = Hdf5Mode::append;  ///< if the file exists
};
/// Options of load_hdf5.
struct Hdf5LoadOptions {
  /// A file may refer to other files: external raw data, virtual datasets, external links. Unless this is
  /// true, that is an IoError.
  bool other_files = false;
  /// Reads only a part of the dataset, one slice for each of its first dims: {slice(100, 200), slice(0, None,
  /// 4)}. Steps must be positive. The sharding splits that part.
  std::vector<Slice> slices = {};
};
/// Writes a dataset of an HDF5 file; missing groups are created. Collective over all ranks. An existing file
/// keeps its other datasets (it is copied first, so that a failure leaves it unchanged). bool and complex as
/// h5py writes them.
void save_hdf5(const std::string& path, const std::string& dataset, const Array& x, Hdf5SaveOptions = {},
               std::source_location where = std::source_location::current());
/// Reads a dataset: with a sharding a committed array, each rank reading its own block; without one
/// uncommitted, every rank reading all of it. Collective over all ranks. Any storage layout and filter that
/// the HDF5 library supports.
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

/// Reads Matrix Market into a dense array: committed to the sharding, or uncommitted without one. Collective
/// over all ranks. Array and coordinate; real (float64), integer (int64), complex (complex128), pattern
/// (ones); general, symmetric, skew-symmetric, hermitian. Duplicate entries of a coordinate file are added.
/// Every rank parses the text and keeps its own block.
Array load_matrix_market(const std::string& path, const Sharding& sharding,
                         std::source_location where = std::source_location::current());
Array load_matrix_market(const std::string& path,
                         std::source_location where = std::source_location::current());
/// How save_matrix_market writes.
struct MatrixMarketOptions {
  bool coordinate = false;  ///< writes only nonzero entries with their positions; otherwise all of them
};
/// Writes a matrix as Matrix Market text that reads back to the same bits: integer, real or complex, general.
/// Collective over all ranks, which write their own columns (or rows, for coordinates). ShapeError unless x
/// has two dims; DtypeError for uint64, which the format does not support.
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

/// Writes a tree. Collective over all ranks. The step appears under its name only after every rank's file is
/// on the disk. IoError if it exists.
template <class Tree> void save(const std::string& dir, int step, const Tree& tree,
                                std::source_location where = std::source_location::current()) {
  detail::save_leaves(dir, step, tree_leaves(tree), tessera::detail::structure_of(tree), where);
}
/// Reads the latest (or the given) step, each leaf with the shape, dtype and sharding of its counterpart in
/// `like`, possibly on another mesh than the saved one; numbers are taken from `like`. Collective over all
/// ranks. Each rank reads the pieces it needs and checks their sums. A damaged latest step is skipped, with a
/// warning, for the newest intact one; a step requested by number is not. A step that cannot be read for
/// another reason (EIO, ESTALE, permissions) is tried four times in two seconds and is then an error: no
/// older one is used instead. In a folder that a Manager of this job saves in, skipped steps are renamed to
/// step_N.damaged. IoError: no step, none intact, none readable, or other structure, shapes or dtypes.
template <class Tree> Tree restore(const std::string& dir, const Tree& like,
                                   std::optional<int> step = std::nullopt,
                                   std::source_location where = std::source_location::current()) {
  return tessera::detail::with_leaves(
      like, detail::restore_leaves(dir, step, tree_leaves(like), tessera::detail::structure_of(like), where));
}
/// The latest step with a valid manifest and files of full length; nullopt if there is none. Not collective;
/// the data are not read.
std::optional<int> latest_step(const std::string& dir,
                               std::source_location where = std::source_location::current());
/// The step that restore uses if none is given: the newest whose checksums are all right. Collective over all
/// ranks, which share the reading.
std::optional<int> latest_whole_step(const std::string& dir,
                                     std::source_location where = std::source_location::current());

}  // namespace checkpoint

}  // namespace tessera::io
