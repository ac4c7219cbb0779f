// LU with partial pivoting on a process grid.
//
//         done | panel | trailing columns | right-hand sides
//      k0 ---- +-------+------------------+--
//              | L\U   |  U := L^-1 (pivot rows)      1. panel k is on every rank of a grid row (broadcast)
//              |  L    |  A := A - L U                2. update the columns of panel k + 1 first, factor it,
//                                                        start its broadcast
//                                                     3. update the other columns meanwhile
#include <algorithm>
#include <cmath>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/factor/look_ahead.hpp"

namespace tessera::factor {
namespace {

template <class T> double magnitude(const T& value) {
  if constexpr (complex_type<T>)
    return std::abs(static_cast<double>(value.real())) + std::abs(static_cast<double>(value.imag()));
  else
    return std::abs(static_cast<double>(value));
}

// A factored panel as sent: [first zero pivot][pivots][top: L\U of its diagonal block][the rows of L below
// that this grid row holds].
template <class T> struct Panel {
  std::int64_t start = 0, width = 0, first_below = 0, rows_below = 0;
  std::vector<std::byte> bytes;
  comm::Pending arrival;
  kernels::PackedPanel<T> packed;  // the rows below, once they have arrived

  void shape(std::int64_t start_, std::int64_t width_, std::int64_t first_below_, std::int64_t rows_below_) {
    start = start_, width = width_, first_below = first_below_, rows_below = rows_below_;
    bytes.resize(header_bytes() + ((width + rows_below) * width) * sizeof(T));
  }
  std::size_t header_bytes() const {
    return (static_cast<std::size_t>(width + 2) / 2 * 2 + 2) * sizeof(std::int64_t);
  }
  std::int64_t& zero_pivot() { return reinterpret_cast<std::int64_t*>(bytes.data())[0]; }
  std::int64_t* pivots() { return reinterpret_cast<std::int64_t*>(bytes.data()) + 1; }
  T* top() { return reinterpret_cast<T*>(bytes.data() + header_bytes()); }
  T* below() { return top() + width * width; }
  void pack(kernels::SumOrder order) {
    packed.pack(rows_below, width, {below(), 1, std::max<std::int64_t>(rows_below, 1)}, order);
  }
};

template <class T> class Lu {
 public:
  Lu(const Grid& grid, GridMatrix<T>& a, std::int64_t extra_columns, bool apply_left,
     std::vector<std::int64_t>& pivots)
      : grid_(grid),
        a_(a),
        rows_(a.layout.rows),
        columns_(a.layout.columns),
        all_columns_(a.columns + extra_columns),
        apply_left_(apply_left),
        pivots_(pivots) {}

  std::int64_t run() {
    pivots_.clear();
    factor_by_panels<Panel<T>>(grid_, columns_, std::min(rows_.extent, columns_.extent), *this);
    return zero_pivot_;
  }

  // ---- the steps of factor_by_panels ----

  // Factors the panel in place and starts its broadcast; the other grid columns start to receive it.
  void make(std::int64_t start, std::int64_t width, Panel<T>& panel) {
    const std::int64_t first_below = rows_.count_below(grid_.row, start + width);
    panel.shape(start, width, first_below, a_.rows - first_below);
    const int owner = columns_.owner(start);
    if (owner == grid_.column) {
      T* columns = a_.at(0, columns_.local(start));
      panel.zero_pivot() = -1;
      if (grid_.shape.rows == 1)
        factor_alone(panel, columns);
      else
        factor_together(panel, columns);
      for (std::int64_t j = 0; j < width; ++j)
        std::copy(columns + first_below + j * a_.ld, columns + first_below + j * a_.ld + panel.rows_below,
                  panel.below() + j * panel.rows_below);
    }
    if (grid_.shape.columns > 1)
      panel.arrival = counted::start_broadcast(*grid_.along_row, panel.bytes.data(),
                                               static_cast<std::int64_t>(panel.bytes.size()), owner);
  }

  bool arrived(Panel<T>& panel) {
    panel.pack(grid_.order);
    if (zero_pivot_ < 0) zero_pivot_ = panel.zero_pivot();
    pivots_.insert(pivots_.end(), panel.pivots(), panel.pivots() + panel.width);
    return true;
  }

  void update(Panel<T>& panel, std::int64_t first, std::int64_t count) {
    if (count <= 0 && grid_.shape.rows == 1) return;
    T* u = exchange_rows(panel, first, count, &upper_);
    const std::int64_t ld_u = grid_.shape.rows == 1 ? a_.ld : panel.width;
    kernels::solve_unit_lower(panel.width, count, panel.top(), panel.width, u, ld_u, grid_.order);
    if (grid_.shape.rows > 1 && rows_.owner(panel.start) == grid_.row)
      for (std::int64_t j = 0; j < count; ++j)
        std::copy(u + j * ld_u, u + j * ld_u + panel.width, a_.at(rows_.local(panel.start), first + j));
    panel.packed.subtract_product(0, panel.rows_below, count, {u, 1, ld_u}, a_.at(panel.first_below, first),
                                  a_.ld);
  }

  void update_rest(Panel<T>& panel, std::int64_t first, Panel<T>& next) {
    if (grid_.shape.rows > 1) {
      update(panel, first, all_columns_ - first);  // one exchange for all columns
    } else {
      const std::int64_t chunk = columns_at_once<T>(panel.rows_below);
      for (std::int64_t c = first; c < all_columns_; c += chunk) {
        update(panel, c, std::min(chunk, all_columns_ - c));
        next.arrival.test();
      }
    }
    if (apply_left_) exchange_rows(panel, 0, columns_.count_below(grid_.column, panel.start), nullptr);
  }

 private:
  void factor_alone(Panel<T>& panel, T* columns) {
    const std::int64_t start = panel.start, width = panel.width;
    const std::int64_t zero_pivot =
        kernels::lu_panel(a_.rows - start, width, columns + start, a_.ld, panel.pivots(), grid_.order);
    if (zero_pivot >= 0) panel.zero_pivot() = start + zero_pivot;
    for (std::int64_t i = 0; i < width; ++i) panel.pivots()[i] += start;
    for (std::int64_t j = 0; j < width; ++j)
      std::copy(columns + start + j * a_.ld, columns + start + j * a_.ld + width, panel.top() + j * width);
  }

  // ---- a panel whose rows are scattered over the grid rows ----
  // Every rank keeps a copy of the panel's top block, so that only pivot rows are sent.

  struct Candidate {
    double magnitude;
    std::int64_t row;
  };

  void factor_together(Panel<T>& panel, T* columns) {
    first_row_ = rows_.count_below(grid_.row, panel.start);
    owns_top_ = rows_.owner(panel.start) == grid_.row;
    message_bytes_ = sizeof(Candidate) + 2 * panel.width * sizeof(T);
    mine_.resize(message_bytes_);
    everybodys_.resize(message_bytes_ * static_cast<std::size_t>(grid_.shape.rows));
    factor_part(panel, columns, 0, panel.width);
  }

  // The first of my rows below row c of the top block.
  std::int64_t first_below(std::int64_t c) const { return first_row_ + (owns_top_ ? c : 0); }

  void factor_part(Panel<T>& panel, T* columns, std::int64_t from, std::int64_t width) {
    constexpr std::int64_t narrow = 4;
    const std::int64_t ld = a_.ld, w = panel.width;
    if (width <= narrow) {
      for (std::int64_t c = from; c < from + width; ++c) {
        choose_pivot(panel, columns, c);
        eliminate_column(panel, columns, c, from + width);
      }
      return;
    }
    const std::int64_t left = width / 2, right = width - left, middle = from + left;
    factor_part(panel, columns, from, left);
    T* top = panel.top();
    lapack::trsm(true, 'N', true, static_cast<int>(left), static_cast<int>(right), top + from + from * w,
                 static_cast<int>(w), top + from + middle * w, static_cast<int>(w));
    if (owns_top_)
      for (std::int64_t j = middle; j < from + width; ++j)
        std::copy(top + from + j * w, top + middle + j * w, columns + first_row_ + from + j * ld);
    const std::int64_t below = first_below(middle);
    lapack::gemm<T>('N', 'N', static_cast<int>(a_.rows - below), static_cast<int>(right),
                    static_cast<int>(left), T(-1), columns + below + from * ld, static_cast<int>(ld),
                    top + from + middle * w, static_cast<int>(w), T(1), columns + below + middle * ld,
                    static_cast<int>(ld));
    factor_part(panel, columns, middle, right);
  }

  // One exchange finds the largest entry of column c, sends its row to all ranks, and moves row c to that
  // row's position.
  void choose_pivot(Panel<T>& panel, T* columns, std::int64_t c) {
    const std::int64_t ld = a_.ld, w = panel.width, wanted_row = panel.start + c;
    std::int64_t best_row = -1;
    double best = -1;
    for (std::int64_t i = first_below(c); i < a_.rows; ++i)
      if (const double m = magnitude(columns[i + c * ld]); m > best) best = m, best_row = i;
    if (best_row < 0 && first_below(c) < a_.rows) best_row = first_below(c), best = 0;  // only NaN
    const Candidate mine{best, best_row < 0 ? rows_.extent : rows_.global(grid_.row, best_row)};
    std::memcpy(mine_.data(), &mine, sizeof mine);
    T* own_rows = reinterpret_cast<T*>(mine_.data() + sizeof mine);
    for (std::int64_t j = 0; j < w; ++j) {
      own_rows[j] = best_row < 0 ? T(0) : columns[best_row + j * ld];
      own_rows[w + j] = owns_top_ ? columns[first_row_ + c + j * ld] : T(0);
    }
    counted::all_gather(*grid_.along_column, mine_.data(), static_cast<std::int64_t>(message_bytes_),
                        everybodys_.data());
    Candidate winner{-1, rows_.extent};
    int owner = 0;
    for (int r = 0; r < grid_.shape.rows; ++r) {
      Candidate candidate;
      std::memcpy(&candidate, message_of(r), sizeof candidate);
      if (candidate.magnitude > winner.magnitude ||
          (candidate.magnitude == winner.magnitude && candidate.row < winner.row))
        winner = candidate, owner = r;
    }
    panel.pivots()[c] = winner.row;
    if (winner.magnitude == 0 && panel.zero_pivot() < 0 && !(rows_at(owner)[c] != rows_at(owner)[c]))
      panel.zero_pivot() = wanted_row;
    const T* pivot_row = rows_at(owner);
    const T* row_c = rows_at(rows_.owner(panel.start)) + w;
    for (std::int64_t j = 0; j < w; ++j) panel.top()[c + j * w] = pivot_row[j];
    if (winner.row != wanted_row && owner == grid_.row) put_row(columns, rows_.local(winner.row), row_c, w);
    if (owns_top_) put_row(columns, first_row_ + c, pivot_row, w);
  }
  std::byte* message_of(int r) { return everybodys_.data() + message_bytes_ * static_cast<std::size_t>(r); }
  const T* rows_at(int r) { return reinterpret_cast<const T*>(message_of(r) + sizeof(Candidate)); }
  void put_row(T* columns, std::int64_t row, const T* values, std::int64_t width) {
    for (std::int64_t j = 0; j < width; ++j) columns[row + j * a_.ld] = values[j];
  }

  void eliminate_column(Panel<T>& panel, T* columns, std::int64_t c, std::int64_t end) {
    const std::int64_t ld = a_.ld, w = panel.width, below = first_below(c + 1);
    const T pivot = panel.top()[c + c * w];
    if (pivot != T(0))
      for (std::int64_t i = below; i < a_.rows; ++i) columns[i + c * ld] /= pivot;
    for (std::int64_t j = c + 1; j < end; ++j) {
      const T factor = panel.top()[c + j * w];
      for (std::int64_t i = below; i < a_.rows; ++i) columns[i + j * ld] -= columns[i + c * ld] * factor;
    }
  }

  // ---- row exchanges ----

  // Applies the panel's row exchanges to some columns. Returns the top rows afterwards: in place if the grid
  // has one row, else in *top_rows, which every rank of the grid column receives (all need U). Without
  // top_rows they are only written back.
  T* exchange_rows(Panel<T>& panel, std::int64_t first, std::int64_t count, std::vector<T>* top_rows) {
    if (grid_.shape.rows == 1) {
      kernels::exchange_rows(count, a_.at(0, first), a_.ld, panel.start, panel.width, panel.pivots());
      return a_.at(panel.start, first);
    }
    return exchange_between_rows(panel, first, count, top_rows != nullptr ? *top_rows : upper_,
                                 top_rows == nullptr);
  }

  // The original row at each position after the exchanges: only the top rows and the pivots' rows move.
  struct Moves {
    std::vector<std::int64_t> top_source;                          // of top row i
    std::vector<std::pair<std::int64_t, std::int64_t>> displaced;  // (top row that leaves, its new row)
  };
  Moves moves_of(Panel<T>& panel) {
    Moves moves;
    std::vector<std::pair<std::int64_t, std::int64_t>> outside;  // row outside the top, its current content
    moves.top_source.resize(panel.width);
    for (std::int64_t i = 0; i < panel.width; ++i) moves.top_source[i] = panel.start + i;
    for (std::int64_t i = 0; i < panel.width; ++i) {
      const std::int64_t pivot = panel.pivots()[i];
      auto& here = moves.top_source[i];
      if (pivot < panel.start + panel.width) {
        std::swap(here, moves.top_source[pivot - panel.start]);
        continue;
      }
      auto found = std::find_if(outside.begin(), outside.end(),
                                [&](const auto& entry) { return entry.first == pivot; });
      if (found == outside.end()) found = outside.insert(outside.end(), {pivot, pivot});
      std::swap(here, found->second);
    }
    for (const auto& [row, holds] : outside) moves.displaced.emplace_back(holds, row);
    return moves;
  }

  T* exchange_between_rows(Panel<T>& panel, std::int64_t first, std::int64_t count, std::vector<T>& top_rows,
                           bool write_back) {
    const Moves moves = moves_of(panel);
    const int ranks = grid_.shape.rows, top_owner = rows_.owner(panel.start);
    std::vector<std::vector<std::int64_t>> sent(ranks);  // rows that each grid row sends to all
    for (const auto source : moves.top_source) sent[rows_.owner(source)].push_back(source);
    for (const auto& [source, to] : moves.displaced) sent[top_owner].push_back(source);
    std::vector<std::int64_t> counts;
    for (const auto& rows : sent) counts.push_back(std::ssize(rows) * count);
    sent_rows_.resize(counts);
    T* packed = sent_rows_.of(grid_.row);
    for (std::int64_t j = 0; j < count; ++j)
      for (const auto row : sent[grid_.row]) *packed++ = *a_.at(rows_.local(row), first + j);
    sent_rows_.exchange(*grid_.along_column);
    top_rows.resize(panel.width * std::max<std::int64_t>(count, 1));
    std::vector<std::size_t> next(ranks, 0);
    const auto copy_row = [&](int r, std::size_t place, T* to, std::int64_t step) {
      const std::size_t stride = sent[r].size();
      for (std::int64_t j = 0; j < count; ++j)
        to[j * step] = sent_rows_.of(r)[place + static_cast<std::size_t>(j) * stride];
    };
    for (std::int64_t i = 0; i < panel.width; ++i) {
      const int r = rows_.owner(moves.top_source[i]);
      const std::size_t place = next[r]++;
      copy_row(r, place, top_rows.data() + i, panel.width);
      if (write_back && top_owner == grid_.row)
        copy_row(r, place, a_.at(rows_.local(panel.start + i), first), a_.ld);
    }
    for (const auto& [source, to] : moves.displaced) {
      const std::size_t place = next[top_owner]++;
      if (rows_.owner(to) == grid_.row) copy_row(top_owner, place, a_.at(rows_.local(to), first), a_.ld);
    }
    return top_rows.data();
  }

  const Grid& grid_;
  GridMatrix<T>& a_;
  const CyclicDim rows_, columns_;
  const std::int64_t all_columns_;
  const bool apply_left_;
  std::vector<std::int64_t>& pivots_;
  std::int64_t zero_pivot_ = -1;
  std::int64_t first_row_ = 0;  // my first row in the panel
  bool owns_top_ = false;
  std::size_t message_bytes_ = 0;
  std::vector<std::byte> mine_, everybodys_;
  std::vector<T> upper_;
  Gathered<T> sent_rows_;
};

}  // namespace

template <class T> std::int64_t lu(const Grid& grid, GridMatrix<T>& a, std::int64_t extra_columns,
                                   bool apply_left, std::vector<std::int64_t>& pivots) {
  return Lu<T>(grid, a, extra_columns, apply_left, pivots).run();
}

#define TESSERA_INSTANTIATE(T) \
  template std::int64_t lu<T>(const Grid&, GridMatrix<T>&, std::int64_t, bool, std::vector<std::int64_t>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
