// Cholesky on a process grid: right-looking, the next panel factored ahead.
//
//   panel k, in its grid column:   L_kk = chol(A_kk), sent down the column;  L_ik = A_ik L_kk^-H
//   then broadcast:                the panel's rows along each grid row; after that, along each grid column,
//                                  the rows whose index is one of its columns
//   update, lower triangle:        A_ij -= L_ik L_jk^H
#include <algorithm>
#include <cmath>

#include "comm/collectives/collectives.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/ordered_columns.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/factor/look_ahead.hpp"

namespace tessera::factor {
namespace {

template <class T> class Cholesky {
 public:
  Cholesky(const Grid& grid, GridMatrix<T>& a)
      : grid_(grid), a_(a), rows_(a.layout.rows), columns_(a.layout.columns) {}

  // The first pivot that is not positive and finite, or -1.
  std::int64_t run() {
    clear_upper();
    factor_by_panels<Panel>(grid_, columns_, rows_.extent, *this);
    return bad_pivot_;
  }

  // Message: [the rows of L below the diagonal block that this grid row holds][status: the first pivot that
  // is not positive and finite, or -1]
  struct Panel {
    std::int64_t start = 0, width = 0, first_below = 0, rows_below = 0;
    Pooled<T> values;
    std::vector<T> matching;  // rows of L for my columns, one column of L after the other
    std::int64_t first_column = 0, matched = 0;
    kernels::PackedPanel<T> packed;
    comm::Pending arrival;
    T& status() { return values[rows_below * width]; }
    T* below() { return values.data(); }
    std::int64_t ld() const { return std::max<std::int64_t>(rows_below, 1); }
  };

  // ---- the steps of factor_by_panels ----

  void make(std::int64_t start, std::int64_t width, Panel& panel) {
    panel.start = start, panel.width = width;
    panel.first_below = rows_.count_below(grid_.row, start + width);
    panel.rows_below = a_.rows - panel.first_below;
    panel.values.resize(1 + panel.rows_below * width);
    const int owner_column = columns_.owner(start), owner_row = rows_.owner(start);
    if (owner_column == grid_.column) {
      const std::int64_t column = columns_.local(start);
      std::vector<T> diagonal(width * width + 1);  // L_kk and the status
      T& status = diagonal.back();
      if (owner_row == grid_.row) {
        T* block = a_.at(rows_.local(start), column);
        const std::int64_t bad = bad_pivot_of(width, block);
        for (std::int64_t j = 0; j < width; ++j)
          std::copy(block + j * a_.ld, block + j * a_.ld + width, diagonal.data() + j * width);
        status = T(static_cast<real_of<T>>(bad >= 0 ? start + bad : -1));
      }
      if (grid_.shape.rows > 1)
        counted::broadcast(*grid_.along_column, diagonal.data(),
                           static_cast<std::int64_t>(diagonal.size() * sizeof(T)), owner_row);
      panel.status() = status;
      T* below = a_.at(panel.first_below, column);
      kernels::solve_adjoint_right(panel.rows_below, width, diagonal.data(), width, below, a_.ld,
                                   grid_.order);
      for (std::int64_t j = 0; j < width; ++j)
        std::copy(below + j * a_.ld, below + j * a_.ld + panel.rows_below,
                  panel.below() + j * panel.rows_below);
    }
    if (grid_.shape.columns > 1)
      panel.arrival =
          counted::start_broadcast(*grid_.along_row, panel.values.data(),
                                   static_cast<std::int64_t>(panel.values.size() * sizeof(T)), owner_column);
  }

  bool arrived(Panel& panel) {
    bad_pivot_ = static_cast<std::int64_t>(real_part(panel.status()));
    if (bad_pivot_ >= 0) return false;  // every rank of the panel's grid row and column gets the same
    panel.packed.pack(panel.rows_below, panel.width, {panel.below(), 1, panel.ld()}, grid_.order);
    match_columns(panel);
    return true;
  }

  // Updates at most a block of my columns, from the first row on or below the first column's diagonal.
  void update(Panel& panel, std::int64_t first, std::int64_t count) {
    if (count <= 0) return;
    const bool alone = grid_.shape.rows == 1;
    const T* rows_of_columns =
        alone ? panel.below() + (columns_.global(grid_.column, first) - panel.start - panel.width)
              : panel.matching.data() + (first - panel.first_column);
    const std::int64_t ld = alone ? panel.ld() : std::max<std::int64_t>(panel.matched, 1);
    const std::int64_t top =
        std::max(panel.first_below, rows_.count_below(grid_.row, columns_.global(grid_.column, first)));
    panel.packed.subtract_product(top - panel.first_below, a_.rows - top, count,
                                  {rows_of_columns, ld, 1, true}, a_.at(top, first), a_.ld,
                                  alone ? top - panel.first_below : kernels::PackedPanel<T>::no_diagonal);
    for (std::int64_t c = first; c < first + count; ++c) {  // clear above the diagonal
      const std::int64_t above = rows_.count_below(grid_.row, columns_.global(grid_.column, c));
      if (above > top) std::fill(a_.at(top, c), a_.at(above, c), T(0));
    }
  }

  void update_rest(Panel& panel, std::int64_t first, Panel& next) {
    for (std::int64_t c = first; c < a_.columns; c += columns_.block) {
      update(panel, c, std::min(columns_.block, a_.columns - c));
      next.arrival.test();
    }
  }

 private:
  // Clears the upper triangle of the diagonal blocks; elements above these blocks are never read.
  void clear_upper() {
    for (std::int64_t j = 0; j < a_.columns; ++j) {
      const std::int64_t column = columns_.global(grid_.column, j);
      const std::int64_t from = rows_.count_below(grid_.row, column / rows_.block * rows_.block),
                         to = rows_.count_below(grid_.row, column);
      std::fill(a_.at(from, j), a_.at(to, j), T(0));
    }
  }

  // The first diagonal element of a block that is infinite or NaN, or -1.
  std::int64_t not_finite(std::int64_t width, const T* block) const {
    for (std::int64_t j = 0; j < width; ++j)
      if (!is_finite(block[j + j * a_.ld])) return j;
    return -1;
  }
  static bool is_finite(T value) {
    if constexpr (complex_type<T>)
      return std::isfinite(value.real()) && std::isfinite(value.imag());
    else
      return std::isfinite(value);
  }

  // Factors a diagonal block in place. An infinity or NaN anywhere in the lower triangle reaches the diagonal
  // element of its row, before or in the factorization of that row's block, whichever LAPACK factors it.
  std::int64_t bad_pivot_of(std::int64_t width, T* block) const {
    if (const std::int64_t bad = not_finite(width, block); bad >= 0) return bad;
    const std::int64_t bad =
        grid_.order == kernels::SumOrder::fixed
            ? kernels::ordered::cholesky_block(width, block, a_.ld)
            : lapack::potrf('L', static_cast<int>(width), block, static_cast<int>(a_.ld)) - 1;
    return bad >= 0 ? bad : not_finite(width, block);
  }

  // Completes the panel: a rank has the panel's rows of its grid row, but its columns need rows that other
  // ranks of its grid column hold.
  void match_columns(Panel& panel) {
    if (grid_.shape.rows == 1) return;  // every rank has all of them
    panel.first_column = columns_.count_below(grid_.column, panel.start + panel.width);
    panel.matched = a_.columns - panel.first_column;
    panel.matching.resize(std::max<std::int64_t>(panel.matched * panel.width, 1));
    std::vector<std::vector<std::int64_t>> local_columns(
        grid_.shape.rows);  // by the grid row that holds the matching row
    for (std::int64_t c = panel.first_column; c < a_.columns; ++c)
      local_columns[rows_.owner(columns_.global(grid_.column, c))].push_back(c);
    std::vector<std::int64_t> counts;
    for (const auto& list : local_columns) counts.push_back(std::ssize(list) * panel.width);
    gathered_.resize(counts);
    T* packed = gathered_.of(grid_.row);
    for (std::int64_t j = 0; j < panel.width; ++j)
      for (const auto c : local_columns[grid_.row])
        *packed++ = panel.below()[rows_.local(columns_.global(grid_.column, c)) - panel.first_below +
                                  j * panel.rows_below];
    gathered_.exchange(*grid_.along_column);
    for (int r = 0; r < grid_.shape.rows; ++r) {
      const T* values = gathered_.of(r);
      for (std::int64_t j = 0; j < panel.width; ++j)
        for (const auto c : local_columns[r])
          panel.matching[c - panel.first_column + j * panel.matched] = *values++;
    }
  }

  const Grid& grid_;
  GridMatrix<T>& a_;
  const CyclicDim rows_, columns_;
  Gathered<T> gathered_;
  std::int64_t bad_pivot_ = -1;
};

}  // namespace

template <class T> std::int64_t cholesky(const Grid& grid, GridMatrix<T>& a) {
  std::int64_t bad = Cholesky<T>(grid, a).run();
  if (grid.all->size() > 1) comm::all_reduce(*grid.all, ReduceKind::max, int64, &bad, &bad, 1);
  return bad;
}

#define TESSERA_INSTANTIATE(T) template std::int64_t cholesky<T>(const Grid&, GridMatrix<T>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
