// Triangular systems on a process grid.
#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "ops/factor/grid_algorithms.hpp"

namespace tessera::factor {
namespace {

template <class T> std::int64_t bytes(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(T));
}

// Calls f(first index of the block, its width) for each block, from the corner where substitution starts.
template <class F> void for_blocks(const CyclicDim& dim, bool forward, F&& f) {
  const std::int64_t blocks = (dim.extent + dim.block - 1) / dim.block;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t start = (forward ? i : blocks - 1 - i) * dim.block;
    f(start, std::min(dim.block, dim.extent - start));
  }
}

// My rows from which a block's solution still has to be subtracted: those after it in the direction of
// substitution.
struct Rest {
  std::int64_t first, count;
};
template <class T>
Rest rest_of(const Grid& grid, const GridMatrix<T>& a, bool lower, std::int64_t start, std::int64_t width) {
  const std::int64_t first = a.layout.rows.count_below(grid.row, start + width);
  return lower ? Rest{first, a.rows - first} : Rest{0, a.layout.rows.count_below(grid.row, start)};
}

}  // namespace

RightSides::RightSides(GridShape grid, const CyclicDim& rows, std::int64_t k, kernels::SumOrder order)
    : few(order == kernels::SumOrder::any && is_few(grid, rows.block, k)) {
  const int parts = grid.columns;
  layout.rows = rows;
  layout.columns = {
      k,
      few ? std::max<std::int64_t>(k, 1) : std::clamp<std::int64_t>((k + parts - 1) / parts, 1, rows.block),
      parts};
}

// Per block: broadcast its column of A along the grid row and the block's solution down the grid column, then
// one product.
template <class T> void substitute(const Grid& grid, const GridMatrix<T>& a, bool lower, bool unit_diagonal,
                                   T* b, std::int64_t ldb, std::int64_t local_columns) {
  const auto &rows = a.layout.rows, &columns = a.layout.columns;
  const auto k = static_cast<int>(local_columns);
  std::vector<T> panel, solution;
  for_blocks(rows, lower, [&](std::int64_t start, std::int64_t width) {
    const int w = static_cast<int>(width), owner_row = rows.owner(start), owner_column = columns.owner(start);
    const Rest rest = rest_of(grid, a, lower, start, width);
    const bool holds_block = owner_row == grid.row;
    // The diagonal block precedes the rest (lower) or follows it (upper).
    const std::int64_t first = holds_block ? (lower ? rows.local(start) : 0) : rest.first,
                       count = rest.count + (holds_block ? width : 0);
    panel.resize(std::max<std::int64_t>(count, 1) * width);
    if (owner_column == grid.column)
      for (std::int64_t j = 0; j < width; ++j) {
        const T* from = a.at(first, columns.local(start) + j);
        std::copy(from, from + count, panel.data() + j * count);
      }
    if (grid.shape.columns > 1 && count > 0)
      counted::broadcast(*grid.along_row, panel.data(), bytes<T>(count * width), owner_column);
    solution.resize(width * std::max<std::int64_t>(local_columns, 1));
    const int ld = static_cast<int>(std::max<std::int64_t>(count, 1));
    if (holds_block) {
      T* block = b + rows.local(start);
      const T* const corner = panel.data() + (lower ? 0 : rest.count);
      if (grid.order == kernels::SumOrder::fixed)
        kernels::solve_ordered_triangle(lower, unit_diagonal, width, local_columns, corner,
                                        std::max<std::int64_t>(count, 1), block, ldb);
      else
        lapack::trsm(lower, 'N', unit_diagonal, w, k, corner, ld, block, static_cast<int>(ldb));
      for (std::int64_t j = 0; j < local_columns; ++j)
        std::copy(block + j * ldb, block + j * ldb + width, solution.data() + j * width);
    }
    if (grid.shape.rows > 1 && local_columns > 0)
      counted::broadcast(*grid.along_column, solution.data(), bytes<T>(width * local_columns), owner_row);
    const T* const left = panel.data() + (lower && holds_block ? width : 0);
    if (grid.order == kernels::SumOrder::fixed)
      return kernels::product<T>(rest.count, local_columns, width, T(-1),
                                 {left, 1, std::max<std::int64_t>(count, 1)}, {solution.data(), 1, width},
                                 true, b + rest.first, ldb, grid.order);
    lapack::gemm<T>('N', 'N', static_cast<int>(rest.count), k, w, T(-1), left, ld, solution.data(), w, T(1),
                    b + rest.first, static_cast<int>(ldb));
  });
}

// Per block: the grid row sums what its ranks have subtracted so far, the owner of the diagonal block solves,
// and its grid column multiplies its rows of that column of A.
template <class T> void substitute_few(const Grid& grid, const GridMatrix<T>& a, bool lower,
                                       bool unit_diagonal, T* b, std::int64_t ldb, std::int64_t k64) {
  if (k64 == 0) return;
  const auto &rows = a.layout.rows, &columns = a.layout.columns;
  const auto k = static_cast<int>(k64);
  const std::int64_t ld = std::max<std::int64_t>(a.rows, 1);
  std::vector<T> partial(ld * k64, T(0)), block, found(ld * k64, T(0));
  if (grid.column == 0)
    for (std::int64_t j = 0; j < k64; ++j)
      std::copy(b + j * ldb, b + j * ldb + a.rows, partial.data() + j * ld);
  for_blocks(rows, lower, [&](std::int64_t start, std::int64_t width) {
    const int w = static_cast<int>(width), owner_row = rows.owner(start), owner_column = columns.owner(start);
    block.resize(width * k64);
    if (owner_row == grid.row) {
      const std::int64_t at = rows.local(start);
      for (std::int64_t j = 0; j < k64; ++j)
        std::copy(partial.data() + at + j * ld, partial.data() + at + j * ld + width,
                  block.data() + j * width);
      if (grid.shape.columns > 1)
        counted::all_reduce(*grid.along_row, ReduceKind::sum, dtype_of<T>(), block.data(), width * k64);
      if (owner_column == grid.column) {
        lapack::trsm(lower, 'N', unit_diagonal, w, k, a.at(at, columns.local(start)), static_cast<int>(a.ld),
                     block.data(), w);
        for (std::int64_t j = 0; j < k64; ++j)
          std::copy(block.data() + j * width, block.data() + (j + 1) * width, found.data() + at + j * ld);
      }
    }
    if (owner_column != grid.column) return;
    if (grid.shape.rows > 1)
      counted::broadcast(*grid.along_column, block.data(), bytes<T>(width * k64), owner_row);
    const Rest rest = rest_of(grid, a, lower, start, width);
    lapack::gemm<T>('N', 'N', static_cast<int>(rest.count), k, w, T(-1),
                    a.at(rest.first, columns.local(start)), static_cast<int>(a.ld), block.data(), w, T(1),
                    partial.data() + rest.first, static_cast<int>(ld));
  });
  if (grid.shape.columns > 1)
    counted::all_reduce(*grid.along_row, ReduceKind::sum, dtype_of<T>(), found.data(), ld * k64);
  if (grid.column == 0)
    for (std::int64_t j = 0; j < k64; ++j)
      std::copy(found.data() + j * ld, found.data() + j * ld + a.rows, b + j * ldb);
}

#define TESSERA_INSTANTIATE(T)                                                                     \
  template void substitute<T>(const Grid&, const GridMatrix<T>&, bool, bool, T*, std::int64_t,     \
                              std::int64_t);                                                       \
  template void substitute_few<T>(const Grid&, const GridMatrix<T>&, bool, bool, T*, std::int64_t, \
                                  std::int64_t);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
