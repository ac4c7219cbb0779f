// Householder QR with whole columns scattered over the ranks: panels are factored without communication,
// reflectors are broadcast.
//
//   panel k  = I - V T V^H:   V (from the panel's first row down) and T go to all ranks, which apply them to
//     their columns on the right;
//   the columns of Q are then made in reverse order, from the last panel to the first.
#include <algorithm>

#include "ops/factor/grid_algorithms.hpp"
#include "ops/factor/look_ahead.hpp"
#include "ops/factor/reflectors.hpp"

namespace tessera::factor {
namespace {

template <class T> class Qr {
 public:
  Qr(const Grid& grid, GridMatrix<T>& a)
      : grid_(grid), a_(a), columns_(a.layout.columns), rows_(a.layout.rows.extent) {
    steps_ = std::min(rows_, columns_.extent);
  }

  void factor() { factor_by_panels<Reflectors<T>>(grid_, columns_, steps_, *this); }

  // Makes the columns of Q, from the last panel to the first; q may be a itself: a panel's broadcast starts
  // before its columns of a are overwritten.
  void write_q(GridMatrix<T>& q) {
    const bool in_place = q.values.data() == a_.values.data();
    const std::int64_t panels = (steps_ + columns_.block - 1) / columns_.block;
    const std::int64_t q_columns = in_place ? columns_.count_below(grid_.column, steps_) : q.columns;
    if (!in_place) set_identity(q, 0, q_columns);
    reflect_backwards(
        grid_, panels, q, q_columns,
        [&](std::int64_t p, Reflectors<T>& panel) { send(p * columns_.block, panel); },
        [&](const Reflectors<T>& panel) {  // earlier columns are zero in these rows
          const std::int64_t first = q.layout.columns.count_below(grid_.column, panel.first);
          if (in_place) set_identity(q, first, columns_.count_below(grid_.column, panel.first + panel.width));
          return first;
        });
  }

  // ---- the steps of factor_by_panels ----

  void make(std::int64_t start, std::int64_t width, Reflectors<T>& panel) {
    if (columns_.owner(start) == grid_.column) {
      auto& t = triangles_.emplace_back(width * width);
      kernels::qr_panel(rows_ - start, width, a_.at(start, columns_.local(start)), a_.ld, t.data(), width,
                        grid_.order);
    }
    send(start, panel);
  }

  bool arrived(Reflectors<T>& panel) {
    panel.pack(grid_.order);
    return true;
  }
  void update(Reflectors<T>& panel, std::int64_t first, std::int64_t count) {
    panel.packed.reflect(count, panel.t(), panel.width, true, a_.at(panel.first, first), a_.ld);
  }
  void update_rest(Reflectors<T>& panel, std::int64_t first, Reflectors<T>& next) {
    panel.reflect(true, a_, first, a_.columns, next);
  }

 private:
  void set_identity(GridMatrix<T>& q, std::int64_t first, std::int64_t end) {
    for (std::int64_t j = first; j < end; ++j) {
      std::fill(q.at(0, j), q.at(0, j) + q.rows, T(0));
      *q.at(q.layout.columns.global(grid_.column, j), j) = T(1);
    }
  }

  void send(std::int64_t start, Reflectors<T>& panel) {
    panel.resize(start, rows_ - start, std::min(columns_.block, steps_ - start));
    const int owner = columns_.owner(start);
    if (owner == grid_.column)
      panel.copy(a_.at(start, columns_.local(start)), a_.ld,
                 triangles_[columns_.local(start) / columns_.block]);
    panel.start_broadcast(grid_, owner);
  }

  const Grid& grid_;
  GridMatrix<T>& a_;
  const CyclicDim columns_;
  const std::int64_t rows_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<T>> triangles_;  // T of my panels
};

}  // namespace

template <class T>
void qr(const Grid& grid, GridMatrix<T>& a, GridMatrix<T>& q, const std::function<void()>& r_is_there) {
  Qr<T> qr(grid, a);
  qr.factor();
  r_is_there();
  qr.write_q(q);
}

#define TESSERA_INSTANTIATE(T) \
  template void qr<T>(const Grid&, GridMatrix<T>&, GridMatrix<T>&, const std::function<void()>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
