/// @file
/// Sparse matrices whose rows are split over mesh axes, and their products.
///
/// A Csr stores its entries by rows; each rank holds those of its own rows. A product fetches from other
/// ranks only the elements of x that its own entries need: the exchange is planned once, when the matrix is
/// created, and `explain` shows its bytes.
///
/// Values are float32, float64, complex64 or complex128 (integers become float32, those of 64 bits float64).
/// Products can be differentiated by the values and by x, batched by vmap, and used inside jit and its loops.
/// Errors are raised on every rank.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>

namespace tessera {
struct SparsePattern;
}

namespace tessera::sparse {

/// Entries of a matrix in any order; entries of one position are added.
struct Entries {
  std::vector<std::int64_t> rows;     ///< from 0
  std::vector<std::int64_t> columns;  ///< one per stored entry
  HostArray values;                   ///< of the same length
};

/// A sparse matrix, compressed by rows: a value, cheap to copy. Its pattern is immutable; its values are an
/// ordinary array.
class Csr {
 public:
  Shape shape() const;           ///< (rows, columns)
  Dtype dtype() const;           ///< the dtype of the values
  std::int64_t entries() const;  ///< number of stored entries, including zeros
  Sharding sharding() const;     ///< the sharding of a vector with one element per stored row
  /// The stored entries, (parts, most entries of a part): a row for each block of rows, zero-padded. The
  /// position of an entry depends on the layout: see entry_rows.
  const Array& values() const { return values_; }
  /// The row and the column of each of values(); -1 in the padding. For a transposed matrix, those of the
  /// transposed one.
  Array entry_rows() const;
  Array entry_columns() const;  ///< see entry_rows
  /// The same pattern with other values, of the shape of values(). ShapeError for another shape.
  Csr with_values(const Operand& values) const;
  /// The transposed matrix: the same entries with rows and columns exchanged.
  Csr T() const;
  /// The largest number of elements of x that one rank fetches from others in a product with a vector.
  std::int64_t exchanged() const;

  /// For the library.
  Csr(std::shared_ptr<const SparsePattern> pattern, Array values, bool is_transposed = false);
  const std::shared_ptr<const SparsePattern>& pattern() const { return pattern_; }  ///< for the library
  bool is_transposed() const { return is_transposed_; }                             ///< for the library

 private:
  std::shared_ptr<const SparsePattern> pattern_;
  Array values_;
  bool is_transposed_;
};

/// @name Construction
/// `rows` gives the mesh axes that split the rows, as NamedSharding(mesh, P("x")); vectors over the columns
/// are split over the same axes. All functions here are collective over all ranks. ShapeError for a shape
/// that is not a matrix's, IndexError for an entry outside of it, ShardingError for a sharding of more than
/// one dim.
/// @{

/// From three arrays of one length: entry k is values[k] at (rows[k], columns[k]). Each rank contributes its
/// part of them, and every entry is sent to the owner of its row. DtypeError unless rows and columns are
/// integers.
[[nodiscard]] Csr from_coordinates(Shape shape, const Operand& rows, const Operand& columns,
                                   const Operand& values, const Sharding& sharding);
/// From a function that returns the entries of a range of rows; each rank calls it for its own, and only the
/// plan is sent. IndexError also for entries of other rows.
[[nodiscard]] Csr from_rows(Shape shape, const Sharding& sharding, std::function<Entries(Range)> entries,
                            std::source_location where = std::source_location::current());
/// The nonzero entries of a dense matrix.
[[nodiscard]] Csr from_dense(const Operand& x, const Sharding& sharding);
/// From a Matrix Market file of coordinates: each rank reads and parses its part of the text. IoError, naming
/// the position, for an invalid file.
[[nodiscard]] Csr load_matrix_market(const std::string& path, const Sharding& sharding,
                                     std::source_location where = std::source_location::current());
/// From a file of scipy.sparse.save_npz: csr, csc, bsr or coo, positions of any integers, values of any dtype
/// (see above). Of csr each rank reads its own rows; of the others an even share, whose entries are sent to
/// the owners of their rows. Of compressed files each rank unpacks the arrays whole. IoError, with the
/// numbers, for arrays that contradict each other and for other formats.
[[nodiscard]] Csr load_npz(const std::string& path, const Sharding& sharding,
                           std::source_location where = std::source_location::current());
/// The same from a group of an HDF5 file as AnnData writes it ("X", "layers/counts"): the datasets data,
/// indices and indptr, and the attributes encoding-type (csr_matrix or csc_matrix) and shape.
[[nodiscard]] Csr load_hdf5(const std::string& path, const std::string& group, const Sharding& sharding,
                            std::source_location where = std::source_location::current());
/// The same from a group of a Zarr store: "cells.zarr/X".
[[nodiscard]] Csr load_zarr(const std::string& path, const Sharding& sharding,
                            std::source_location where = std::source_location::current());
/// @}

/// A matrix that stays in its file. Its entries are arrays in files (io/stream.hpp): compute and store stream
/// programs on them, as sqrt(sum(square(a.values))) and matmul.
struct FileMatrix {
  Shape shape;           ///< (rows, columns)
  Array rows;            ///< of each stored entry, int64
  Array columns;         ///< of each stored entry, int64
  Array values;          ///< of each stored entry, in the file's dtype
  FileMatrix T() const;  ///< the transposed matrix
};
/// Opens a matrix of the formats of load_npz, load_hdf5 and load_zarr without loading it: a .npz file, a Zarr
/// store, or a group of an HDF5 file. Arrays that are compressed in a .npz file are unpacked by one rank
/// each, to files without a name in TMPDIR, which last as long as the matrix. Collective over all ranks.
/// IoError for other files; for positions outside of the matrix when they are read.
[[nodiscard]] FileMatrix open(const std::string& path, const std::string& group = "",
                              std::source_location where = std::source_location::current());

/// Writes a file for scipy.sparse.load_npz: csr with sorted columns, not compressed; a transposed matrix as
/// csc. Positions have 32 bits where these suffice. Collective over all ranks, of which each writes an even
/// share.
void save_npz(const std::string& path, const Csr& a,
              std::source_location where = std::source_location::current());
/// The same as a group of an HDF5 file, for AnnData. An existing file keeps its other objects; IoError if the
/// group holds datasets of these names.
void save_hdf5(const std::string& path, const std::string& group, const Csr& a,
               std::source_location where = std::source_location::current());
/// The same as a Zarr store of its own, replacing an existing store.
void save_zarr(const std::string& path, const Csr& a,
               std::source_location where = std::source_location::current());
/// Writes the entries as a Matrix Market file of coordinates, each rank its own. Collective over all ranks.
void save_matrix_market(const std::string& path, const Csr& a,
                        std::source_location where = std::source_location::current());

/// @name Use
/// These functions record and are not collective.
/// @{

/// a x for a vector or for the columns of x (n, ...): (m, ...), split as the rows of a. Moves exchanged()
/// elements for each column; a transposed matrix the same in the other direction. ShapeError for another
/// length of x.
[[nodiscard]] Array matmul(const Csr& a, const Operand& x);
/// The same with a matrix in a file: one pass over its entries, with x and the result in memory.
[[nodiscard]] Array matmul(const FileMatrix& a, const Operand& x);
/// The diagonal, min(m, n) elements; nothing moves for a square matrix.
[[nodiscard]] Array diagonal(const Csr& a, std::source_location where = std::source_location::current());
/// All elements, (m, n) split by rows: for small matrices.
[[nodiscard]] Array to_dense(const Csr& a, std::source_location where = std::source_location::current());
/// @}

}  // namespace tessera::sparse
