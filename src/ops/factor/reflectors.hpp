// Panels of Householder reflectors, made on one grid column and applied by every rank to its own columns.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "comm/collectives/collectives.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/panel_factor.hpp"
#include "ops/factor/grid.hpp"

namespace tessera::factor {

// I - V T V^H on the rows from `first` on: [V, rows x width][T, width x width].
template <class T> struct Reflectors {
  std::int64_t first = 0, rows = 0, width = 0;
  std::vector<T> values;
  comm::Pending arrival;
  kernels::PackedReflectors<T> packed;  // after pack()
  T* v() { return values.data(); }
  T* t() { return values.data() + rows * width; }

  void resize(std::int64_t first_row, std::int64_t row_count, std::int64_t columns) {
    first = first_row, rows = row_count, width = columns;
    values.resize((rows + width) * width);
  }
  // From a factored panel, whose reflectors stand below its diagonal, and its T.
  void copy(const T* panel, std::int64_t ld, const std::vector<T>& triangle) {
    kernels::copy_reflectors(rows, width, panel, ld, v(), rows);
    std::copy(triangle.begin(), triangle.end(), t());
  }
  // Starts the broadcast from the grid column `owner`. Collective over the grid's rows.
  void start_broadcast(const Grid& grid, int owner) {
    if (grid.shape.columns > 1)
      arrival = counted::start_broadcast(*grid.along_row, values.data(),
                                         static_cast<std::int64_t>(values.size() * sizeof(T)), owner);
  }
  void pack(kernels::SumOrder order) { packed.pack(rows, width, v(), rows, order); }
  // Applies the packed reflectors (or their adjoint) to local columns of z, in chunks that stay cached from
  // one product to the next; meanwhile `next` arrives.
  void reflect(bool adjoint, GridMatrix<T>& z, std::int64_t from, std::int64_t end, Reflectors& next) {
    const std::int64_t chunk = columns_at_once<T>(rows);
    for (std::int64_t c = from; c < end; c += chunk) {
      packed.reflect(std::min(chunk, end - c), t(), width, adjoint, z.at(first, c), z.ld);
      next.arrival.test();
    }
  }
};

// z := Q z for a Q of so many panels, from the last to the first. send(p, panel) starts a panel's broadcast;
// first_column(panel) is the first local column of z that the panel changes.
template <class T, class Send, class FirstColumn>
void reflect_backwards(const Grid& grid, std::int64_t panels, GridMatrix<T>& z, std::int64_t columns,
                       Send&& send, FirstColumn&& first_column) {
  Reflectors<T> panel, next;
  if (panels > 0) send(panels - 1, panel);
  for (std::int64_t p = panels; p-- > 0;) {
    panel.arrival.wait();
    if (p > 0) send(p - 1, next);
    panel.pack(grid.order);
    panel.reflect(false, z, first_column(panel), columns, next);
    std::swap(panel, next);
  }
}

}  // namespace tessera::factor
