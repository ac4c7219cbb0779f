// Householder QR with whole columns scattered over the ranks: panels are factored without communication,
// reflectors are broadcast.
//
//   panel k  = I - V T V^H:   V (from the panel's first row down) and T go to all ranks, which apply them to
//     their columns on the right;
//   the columns of Q are then made in reverse order, from the last panel to the first.
#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "ops/factor/grid_algorithms.hpp"

namespace tessera::factor {
namespace {

template <class T> class Qr {
 public:
  Qr(const Grid& grid, GridMatrix<T>& a)
      : grid_(grid), a_(a), columns_(a.layout.columns), rows_(a.layout.rows.extent) {
    steps_ = std::min(rows_, columns_.extent);
  }

  void factor() {
    Reflectors current, next;
    if (steps_ > 0) make(0, current);
    for (std::int64_t start = 0; start < steps_; start += columns_.block) {
      current.wait(grid_.order);
      const std::int64_t after = start + current.width;
      std::int64_t first = columns_.count_below(grid_.column, after);
      if (after < steps_) {
        if (columns_.owner(after) == grid_.column) {
          const std::int64_t own = columns_.count_below(grid_.column, after + width_at(after)) - first;
          apply(current, true, a_.at(start, first), a_.ld, own);
          first += own;
        }
        make(after, next);
      }
      const std::int64_t chunk =
          columns_at_once<T>(current.rows);  // stay cached from one product to the next
      for (std::int64_t c = first; c < a_.columns; c += chunk) {
        apply(current, true, a_.at(start, c), a_.ld, std::min(chunk, a_.columns - c));
        next.arrival.test();
      }
      std::swap(current, next);
    }
  }

  // Makes the columns of Q, from the last panel to the first; q may be a itself: a panel's broadcast starts
  // before its columns of a are overwritten.
  void write_q(GridMatrix<T>& q) {
    const bool in_place = q.values.data() == a_.values.data();
    const std::int64_t panels = (steps_ + columns_.block - 1) / columns_.block;
    const std::int64_t q_columns = in_place ? columns_.count_below(grid_.column, steps_) : q.columns;
    if (!in_place) set_identity(q, 0, q_columns);
    Reflectors panel, next;
    if (panels > 0) send((panels - 1) * columns_.block, panel);
    for (std::int64_t p = panels; p-- > 0;) {
      const std::int64_t start = p * columns_.block;
      panel.wait(grid_.order);
      if (p > 0) send(start - columns_.block, next);
      const std::int64_t first =
          q.layout.columns.count_below(grid_.column, start);  // earlier columns are zero in these rows
      if (in_place) set_identity(q, first, columns_.count_below(grid_.column, start + panel.width));
      const std::int64_t chunk = columns_at_once<T>(panel.rows);
      for (std::int64_t c = first; c < q_columns; c += chunk) {
        apply(panel, false, q.at(start, c), q.ld, std::min(chunk, q_columns - c));
        next.arrival.test();
      }
      std::swap(panel, next);
    }
  }

 private:
  // [V, rows x width][T, width x width]
  struct Reflectors {
    std::int64_t rows = 0, width = 0;
    std::vector<T> values;
    comm::Pending arrival;
    kernels::PackedReflectors<T> packed;  // once they have arrived
    T* v() { return values.data(); }
    T* t() { return values.data() + rows * width; }
    void wait(kernels::SumOrder order) {
      arrival.wait();
      packed.pack(rows, width, v(), rows, order);
    }
  };
  void set_identity(GridMatrix<T>& q, std::int64_t first, std::int64_t end) {
    for (std::int64_t j = first; j < end; ++j) {
      std::fill(q.at(0, j), q.at(0, j) + q.rows, T(0));
      *q.at(q.layout.columns.global(grid_.column, j), j) = T(1);
    }
  }
  std::int64_t width_at(std::int64_t start) const { return std::min(columns_.block, steps_ - start); }

  void make(std::int64_t start, Reflectors& panel) {
    if (columns_.owner(start) == grid_.column) {
      const std::int64_t width = width_at(start);
      auto& t = triangles_.emplace_back(width * width);
      kernels::qr_panel(rows_ - start, width, a_.at(start, columns_.local(start)), a_.ld, t.data(), width,
                        grid_.order);
    }
    send(start, panel);
  }

  void send(std::int64_t start, Reflectors& panel) {
    panel.rows = rows_ - start;
    panel.width = width_at(start);
    panel.values.resize((panel.rows + panel.width) * panel.width);
    const int owner = columns_.owner(start);
    if (owner == grid_.column) {
      kernels::copy_reflectors(panel.rows, panel.width, a_.at(start, columns_.local(start)), a_.ld, panel.v(),
                               panel.rows);
      const auto& t = triangles_[columns_.local(start) / columns_.block];
      std::copy(t.begin(), t.end(), panel.t());
    }
    if (grid_.shape.columns > 1)
      panel.arrival =
          counted::start_broadcast(*grid_.along_row, panel.values.data(),
                                   static_cast<std::int64_t>(panel.values.size() * sizeof(T)), owner);
  }

  void apply(Reflectors& panel, bool adjoint, T* to, std::int64_t ld, std::int64_t count) {
    panel.packed.reflect(count, panel.t(), panel.width, adjoint, to, ld);
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
