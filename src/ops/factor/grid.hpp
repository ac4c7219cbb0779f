// The ranks that hold one matrix together, arranged as a process grid, and the way of a matrix between the
// tiles that the sharding gives and the block-cyclic layout that the factorizations work in.
#pragma once
#include <algorithm>
#include <complex>
#include <cstring>
#include <span>
#include <vector>

#include "comm/collectives/point_to_point.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/magnitude.hpp"
#include "ops/factor/block_cyclic.hpp"
#include "ops/factor/traffic/conversation.hpp"
#include "types/pooled.hpp"

namespace tessera::factor {

using kernels::complex_type;
using kernels::real_of;
namespace lapack = kernels::lapack;

// Rank r of `all` stands at row r / columns, column r % columns. Making one is collective over its ranks.
struct Grid {
  Grid(const std::vector<int>& device_ids, GridShape shape);
  GridShape shape;
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
// How many columns of so many rows stay in the cache that the cores share.
template <class T> std::int64_t columns_at_once(std::int64_t rows) {
  constexpr std::int64_t bytes = 6 << 20;
  return std::clamp<std::int64_t>(
      bytes / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(rows, 1) / 8 * 8, 64, 512);
}

// This rank's part of a block-cyclic matrix, column-major.
template <class T> struct GridMatrix {
  // `padded`: columns start in different sets of the caches also when there is a power of two of rows.
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

// The tiles of the grid's ranks, in grid order. element (i, j) of a rank's rectangle lies at data[i *
// row_step + j * column_step].
struct Tiles {
  std::vector<Rectangle> held;
  std::int64_t row_step = 0, column_step = 1;
  bool conjugate = false;
  // The tiles seen as tiles of the transposed matrix.
  Tiles transposed() const;
};

// Which elements move: all, or a triangle with the diagonal (and what shares a block with it). store writes
// zeros for the others.
enum class Part { all, lower, upper };

// The range of this rank's part of a matrix, or of a triangle with the diagonal.
template <class T>
kernels::Magnitude magnitude_of_part(const Grid&, const Tiles&, const T* tile, Part = Part::all);
// Combines what the ranks found: the same result on every rank. An element that several ranks hold counts as
// often. Collective.
void combine(const Grid&, std::span<kernels::Magnitude>);
template <class T>
kernels::Magnitude magnitude_of(const Grid& grid, const Tiles& tiles, const T* tile, Part part = Part::all) {
  kernels::Magnitude found = magnitude_of_part(grid, tiles, tile, part);
  combine(grid, {&found, 1});
  return found;
}
// This rank's part of a matrix without numbers: NaN, and zeros beside the triangle.
template <class T> void fill_nan(const Grid&, const Tiles&, T* tile, Part = Part::all);

// Times 2^exponent: all of it, or the upper triangle with the diagonal.
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

// Tiles -> grid and back. One message per pair of ranks, a round per distance between them, so that the
// messages in memory at one time are a fraction of a shard.
template <class T> void load(const Grid&, const Tiles&, const T* tile, const BlockCyclic&, T* local,
                             std::int64_t ld, Part = Part::all);
template <class T> void store(const Grid&, const Tiles&, T* tile, const BlockCyclic&, const T* local,
                              std::int64_t ld, Part = Part::all);
// How many elements rank `me` of the grid gets from others in them.
std::int64_t loaded_from_others(const Tiles&, const BlockCyclic&, int me, Part = Part::all);
std::int64_t stored_from_others(const Tiles&, const BlockCyclic&, int me, Part = Part::all);

}  // namespace tessera::factor
