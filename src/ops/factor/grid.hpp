// The ranks that hold one matrix together, as a process grid, and the redistribution of a matrix between the
// tiles of its sharding and the block-cyclic layout of the factorizations.
#pragma once
#include <algorithm>
#include <complex>
#include <cstring>
#include <span>
#include <vector>

#include "comm/collectives/point_to_point.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/magnitude.hpp"
#include "ops/factor/block_cyclic.hpp"
#include "ops/factor/traffic/traffic.hpp"
#include "types/pooled.hpp"

namespace tessera::factor {

using kernels::complex_type;
using kernels::conjugate;
using kernels::real_of;
using kernels::real_part;
namespace lapack = kernels::lapack;

// Rank r of `all` is at row r / columns, column r % columns. The constructor is collective over its ranks.
struct Grid {
  Grid(const std::vector<int>& device_ids, GridShape shape, kernels::SumOrder order = kernels::SumOrder::any);
  GridShape shape;
  kernels::SumOrder order;  // of the sums in algorithms on this grid; `fixed` needs a grid of one row
  const comm::Communicator* all;
  const comm::Communicator* along_row;     // my row: one rank per grid column
  const comm::Communicator* along_column;  // my column: one rank per grid row
  int rank, row, column;
};

template <class T> std::int64_t leading_dimension(std::int64_t rows) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(T));
  const std::int64_t lines = std::max<std::int64_t>((rows + line - 1) / line, 1);
  return (lines % 8 == 0 ? lines + 1 : lines) * line;
}
// The number of columns of this length that fit the cache shared by the cores.
template <class T> std::int64_t columns_at_once(std::int64_t rows) {
  constexpr std::int64_t bytes = 6 << 20;
  return std::clamp<std::int64_t>(
      bytes / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(rows, 1) / 8 * 8, 64, 512);
}

// This rank's part of a block-cyclic matrix, column-major.
template <class T> struct GridMatrix {
  // `padded`: columns start in different cache sets even if the number of rows is a power of two.
  GridMatrix(const Grid& grid, BlockCyclic layout, std::int64_t extra_columns = 0, bool padded = false)
      : layout(layout),
        rows(layout.rows.count(grid.row)),
        columns(layout.columns.count(grid.column)),
        ld(padded ? leading_dimension<T>(rows) : std::max<std::int64_t>(rows, 1)),
        values((rows > 0 ? ld : 0) * (columns + extra_columns)) {
    kernels::lapack_int(ld, "a number of rows per rank"),
        kernels::lapack_int(columns + extra_columns, "a number of columns per rank");
  }
  BlockCyclic layout;
  std::int64_t rows, columns, ld;
  Pooled<T> values;
  T* at(std::int64_t row, std::int64_t column) { return values.data() + column * ld + row; }
  const T* at(std::int64_t row, std::int64_t column) const { return values.data() + column * ld + row; }
};

// Values from each rank of a row or column of the grid, in rank order.
template <class T> class Gathered {
 public:
  // counts[r]: the number of values from rank r.
  void resize(const std::vector<std::int64_t>& counts) {
    bytes_.clear(), offsets_.clear();
    std::int64_t total = 0;
    for (const std::int64_t count : counts) {
      bytes_.push_back(count * static_cast<std::int64_t>(sizeof(T)));
      offsets_.push_back(total);
      total += bytes_.back();
    }
    values_.resize(static_cast<std::size_t>(total) / sizeof(T));
  }
  T* of(int rank) { return values_.data() + offsets_[rank] / static_cast<std::int64_t>(sizeof(T)); }
  // Sends this rank's values to the others and receives theirs. Collective over `ranks`.
  void exchange(const comm::Communicator& ranks) {
    const int me = ranks.rank();
    counted::all_gather_v(ranks, of(me), bytes_[me], values_.data(), bytes_, offsets_);
  }

 private:
  std::vector<T> values_;
  std::vector<std::int64_t> bytes_, offsets_;
};

// The tiles of the grid's ranks, in grid order. Element (i, j) of a rank's rectangle is at data[i * row_step
// + j * column_step].
struct Tiles {
  std::vector<Rectangle> held;
  std::int64_t row_step = 0, column_step = 1;
  bool conjugate = false;
  // The tiles as tiles of the transposed matrix.
  Tiles transposed() const;
};

// The elements that are moved: all, or a triangle with the diagonal (and the elements that share a block with
// it). store writes zeros for the others.
enum class Part { all, lower, upper };

// The magnitude of this rank's part of a matrix, or of a triangle with the diagonal.
template <class T>
kernels::Magnitude magnitude_of_part(const Grid&, const Tiles&, const T* tile, Part = Part::all);
// Combines the ranks' magnitudes to the same result on every rank. An element on several ranks counts several
// times. Collective.
void combine(const Grid&, std::span<kernels::Magnitude>);
template <class T>
kernels::Magnitude magnitude_of(const Grid& grid, const Tiles& tiles, const T* tile, Part part = Part::all) {
  kernels::Magnitude found = magnitude_of_part(grid, tiles, tile, part);
  combine(grid, {&found, 1});
  return found;
}
// Fills this rank's part of a matrix with NaN, and with zeros outside the triangle.
template <class T> void fill_nan(const Grid&, const Tiles&, T* tile, Part = Part::all);

// Multiplies all of the matrix, or its upper triangle with the diagonal, by 2^exponent.
template <class T> void scale(const Grid& grid, GridMatrix<T>& matrix, int exponent, Part part) {
  if (exponent == 0) return;
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    const std::int64_t rows =
        part == Part::all
            ? matrix.rows
            : matrix.layout.rows.count_below(grid.row, matrix.layout.columns.global(grid.column, j) + 1);
    kernels::scale(matrix.at(0, j), rows, exponent);
  }
}

// Moves tiles to the grid and back. One message per pair of ranks, one round per distance between ranks, so
// that only a fraction of a shard is in messages at one time.
template <class T> void load(const Grid&, const Tiles&, const T* tile, const BlockCyclic&, T* local,
                             std::int64_t ld, Part = Part::all);
template <class T> void store(const Grid&, const Tiles&, T* tile, const BlockCyclic&, const T* local,
                              std::int64_t ld, Part = Part::all);
// The number of elements that rank `me` of the grid receives in load and in store.
std::int64_t loaded_from_others(const Tiles&, const BlockCyclic&, int me, Part = Part::all);
std::int64_t stored_from_others(const Tiles&, const BlockCyclic&, int me, Part = Part::all);

}  // namespace tessera::factor
