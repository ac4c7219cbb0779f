/// @file
/// Sparse matrices whose rows are split over mesh axes, and their products.
///
/// A Csr keeps its entries by rows; each rank holds those of its own rows. A product takes from other ranks
/// the elements of x that its own entries need and nothing else: who gives what to whom is found out once,
/// when the matrix is made, and `explain` says how many bytes travel.
///
/// Values are float32, float64, complex64 or complex128 (integers become float32, those of 64 bits float64).
/// Products can be differentiated by the values and by x, batched by vmap, and used inside jit and its
/// loops. Errors are raised on every rank.
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

/// Entries of a matrix in any order; those of one place are added up.
struct Entries {
  std::vector<std::int64_t> rows;     ///< from 0
  std::vector<std::int64_t> columns;  ///< as many
  HostArray values;                   ///< as many
};

/// A sparse matrix, compressed by rows: a value, cheap to copy. Its pattern never changes; its values are an
/// array like others.
class Csr {
 public:
  Shape shape() const;           ///< (rows, columns)
  Dtype dtype() const;           ///< of the values
  std::int64_t entries() const;  ///< stored ones, zeros among them
  Sharding sharding() const;     ///< of a vector with an element for each stored row
  /// The entries as they are stored, (parts, most entries of a part): a row for each block of rows, zeros
  /// behind its entries. Which entry stands where depends on the layout: see entry_rows.
  const Array& values() const { return values_; }
  /// The row and the column of each of values(); -1 behind the entries. Of a transposed matrix its own.
  Array entry_rows() const;
  Array entry_columns() const;  ///< see entry_rows
  /// The same pattern with other values, of the shape of values(). ShapeError for another one.
  Csr with_values(const Operand& values) const;
  /// The transposed matrix: the same entries, read the other way.
  Csr T() const;
  /// The most elements of x that one rank takes from others in a product with a vector.
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

/// @name Making
/// `rows` says over which mesh axes the rows are split, as NamedSharding(mesh, P("x")); vectors of columns
/// are split over the same ones. All of these are collective over all ranks. ShapeError for a shape that is
/// no matrix's, IndexError for an entry outside of it, ShardingError for a sharding of more than one dim.
/// @{

/// From three arrays of one length: entry k is values[k] at (rows[k], columns[k]). Each rank brings its part
/// of them, and every entry goes to the owner of its row. DtypeError unless rows and columns are integers.
[[nodiscard]] Csr from_coordinates(Shape shape, const Operand& rows, const Operand& columns,
                                   const Operand& values, const Sharding& sharding);
/// From a function that gives the entries of a range of rows; each rank asks for its own, and nothing travels
/// but the plan. IndexError for entries of other rows, too.
[[nodiscard]] Csr from_rows(Shape shape, const Sharding& sharding, std::function<Entries(Range)> entries,
                            std::source_location where = std::source_location::current());
/// The entries of a dense matrix that are not 0.
[[nodiscard]] Csr from_dense(const Operand& x, const Sharding& sharding);
/// A Matrix Market file of coordinates: each rank reads and parses its part of the text. IoError, naming the
/// place, for a file that is none.
[[nodiscard]] Csr load_matrix_market(const std::string& path, const Sharding& sharding,
                                     std::source_location where = std::source_location::current());
/// @}
/// Writes the entries as a Matrix Market file of coordinates, each rank its own. Collective over all ranks.
void save_matrix_market(const std::string& path, const Csr& a,
                        std::source_location where = std::source_location::current());

/// @name Use
/// These record and are not collective.
/// @{

/// a x for a vector or for the columns of x (n, ...): (m, ...), split as the rows of a. Moves what exchanged
/// says for each column; of a transposed matrix the same the other way. ShapeError for another length of x.
[[nodiscard]] Array matmul(const Csr& a, const Operand& x);
/// The diagonal, min(m, n) elements; nothing moves where the matrix is square.
[[nodiscard]] Array diagonal(const Csr& a, std::source_location where = std::source_location::current());
/// All elements, (m, n) by rows: for small matrices.
[[nodiscard]] Array to_dense(const Csr& a, std::source_location where = std::source_location::current());
/// @}

}  // namespace tessera::sparse
