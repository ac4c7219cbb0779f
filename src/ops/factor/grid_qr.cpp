// Householder QR with whole columns dealt over the ranks: panels are factored without communication, reflectors travel.
//
//   panel k  = I - V T V^H:   V (from the panel's first row down) and T go to everybody, who apply them to their columns on the right;
//   the columns of Q are then made the other way round, from the last panel to the first.
#include <algorithm>

#include "comm/collectives.hpp"
#include "ops/factor/grid_algorithms.hpp"

namespace tessera::factor {
namespace {

template <class T> class Qr {
 public:
  Qr(const Grid& grid, GridMatrix<T>& a) : grid_(grid), a_(a), columns_(a.layout.columns), rows_(a.layout.rows.extent) {
    steps_ = std::min(rows_, columns_.extent);
  }

  void factor() {
    Reflectors current, next;
    if (steps_ > 0) make(0, current);
    for (std::int64_t start = 0; start < steps_; start += columns_.block) {
      current.arrival.wait();
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
      constexpr std::int64_t chunk = 512;
      for (std::int64_t c = first; c < a_.columns; c += chunk) {
        apply(current, true, a_.at(start, c), a_.ld, std::min(chunk, a_.columns - c));
        next.arrival.test();
      }
      std::swap(current, next);
    }
  }

  void write_r(GridMatrix<T>& r) const {
    for (std::int64_t j = 0; j < r.columns; ++j) {
      const std::int64_t upper = std::min(columns_.global(grid_.column, j) + 1, steps_);
      std::copy(a_.at(0, j), a_.at(0, j) + upper, r.at(0, j));
      std::fill(r.at(0, j) + upper, r.at(0, j) + r.rows, T(0));
    }
  }

  void write_q(GridMatrix<T>& q) {
    const auto& columns = q.layout.columns;
    for (std::int64_t j = 0; j < q.columns; ++j) {
      std::fill(q.at(0, j), q.at(0, j) + q.rows, T(0));
      *q.at(columns.global(grid_.column, j), j) = T(1);
    }
    Reflectors panel;
    const std::int64_t panels = (steps_ + columns_.block - 1) / columns_.block;
    for (std::int64_t p = panels; p-- > 0;) {
      const std::int64_t start = p * columns_.block;
      send(start, panel);
      panel.arrival.wait();
      const std::int64_t first = columns.count_below(grid_.column, start);  // columns before it are zero where the reflectors act
      apply(panel, false, q.at(start, first), q.ld, q.columns - first);
    }
  }

 private:
  // [V, rows x width][T, width x width]
  struct Reflectors {
    std::int64_t rows = 0, width = 0;
    std::vector<T> values;
    comm::Pending arrival;
    T* v() { return values.data(); }
    T* t() { return values.data() + rows * width; }
  };
  std::int64_t width_at(std::int64_t start) const { return std::min(columns_.block, steps_ - start); }

  void make(std::int64_t start, Reflectors& panel) {
    if (columns_.owner(start) == grid_.column) {
      const int rows = static_cast<int>(rows_ - start), width = static_cast<int>(width_at(start)), ld = static_cast<int>(a_.ld);
      T* corner = a_.at(start, columns_.local(start));
      std::vector<T> tau(static_cast<std::size_t>(width)), work(1);
      lapack::geqrf(rows, width, corner, ld, tau.data(), work.data(), -1);
      work.resize(static_cast<std::size_t>(std::max(kernels::queried_size(work[0], "a workspace"), 1)));
      lapack::geqrf(rows, width, corner, ld, tau.data(), work.data(), static_cast<int>(work.size()));
      auto& t = triangles_.emplace_back(static_cast<std::size_t>(width) * static_cast<std::size_t>(width), T(0));
      lapack::larft(rows, width, corner, ld, tau.data(), t.data(), width);
    }
    send(start, panel);
  }

  void send(std::int64_t start, Reflectors& panel) {
    panel.rows = rows_ - start;
    panel.width = width_at(start);
    panel.values.resize(static_cast<std::size_t>((panel.rows + panel.width) * panel.width));
    const int owner = columns_.owner(start);
    if (owner == grid_.column) {
      const T* corner = a_.at(start, columns_.local(start));
      for (std::int64_t j = 0; j < panel.width; ++j)
        std::copy(corner + j * a_.ld, corner + j * a_.ld + panel.rows, panel.v() + j * panel.rows);
      const auto& t = triangles_[static_cast<std::size_t>(columns_.local(start) / columns_.block)];
      std::copy(t.begin(), t.end(), panel.t());
    }
    if (grid_.shape.columns > 1)
      panel.arrival =
          comm::start_broadcast(*grid_.along_row, panel.values.data(), static_cast<std::int64_t>(panel.values.size() * sizeof(T)), owner);
  }

  void apply(Reflectors& panel, bool adjoint, T* to, std::int64_t ld, std::int64_t count) {
    if (count <= 0) return;
    work_.resize(static_cast<std::size_t>(count * panel.width));
    const char trans = !adjoint ? 'N' : complex_type<T> ? 'C' : 'T';
    lapack::larfb(trans, static_cast<int>(panel.rows), static_cast<int>(count), static_cast<int>(panel.width), panel.v(),
                  static_cast<int>(panel.rows), panel.t(), static_cast<int>(panel.width), to, static_cast<int>(ld), work_.data(),
                  static_cast<int>(count));
  }

  const Grid& grid_;
  GridMatrix<T>& a_;
  const CyclicDim columns_;
  const std::int64_t rows_;
  std::int64_t steps_ = 0;
  std::vector<std::vector<T>> triangles_;  // T of my panels
  std::vector<T> work_;
};

}  // namespace

template <class T> void qr(const Grid& grid, GridMatrix<T>& a, GridMatrix<T>& q, GridMatrix<T>* r) {
  Qr<T> qr(grid, a);
  qr.factor();
  if (r != nullptr) qr.write_r(*r);
  qr.write_q(q);
}

#define TESSERA_INSTANTIATE(T) template void qr<T>(const Grid&, GridMatrix<T>&, GridMatrix<T>&, GridMatrix<T>*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
