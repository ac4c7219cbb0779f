// Matrices that one rank factors alone, because it finishes before several would. Every rank receives its
// block of the results: ranks that each computed them would get vectors of different signs on different CPUs.
#pragma once
#include "ops/factor/grid.hpp"

namespace tessera::factor {

// Whether one rank finishes before several do, by measurement (one core per rank). `extent`: the smaller one
// of the matrix.
bool is_quicker_alone(std::int64_t extent);
// While it exists, ranks factor matrices together even if one rank would be faster. For tests, on all ranks.
struct Together {
  Together();
  ~Together();
  Together(const Together&) = delete;
};

// A layout with one block (rows x columns) on the first rank and nothing on the others.
inline BlockCyclic one_block(GridShape grid, std::int64_t rows, std::int64_t columns) {
  return {{rows, std::max<std::int64_t>(rows, 1), grid.rows},
          {columns, std::max<std::int64_t>(columns, 1), grid.columns}};
}

// The matrix on the first rank in row-major order, as kernels expect it.
template <class T> class OnFirst {
 public:
  OnFirst(const Grid& grid, std::int64_t rows, std::int64_t columns)
      : grid_(grid), transposed_(grid, one_block(grid.shape, columns, rows)) {}
  void load(const Tiles& tiles, const T* tile) {
    factor::load(grid_, tiles.transposed(), tile, transposed_.layout, transposed_.values.data(),
                 transposed_.ld);
  }
  void store(const Tiles& tiles, T* tile) const {
    factor::store(grid_, tiles.transposed(), tile, transposed_.layout, transposed_.values.data(),
                  transposed_.ld);
  }
  T* data() { return transposed_.values.data(); }

 private:
  const Grid& grid_;
  GridMatrix<T> transposed_;
};

// Broadcasts the first rank's results: whether it converged, and the values.
template <class Real>
bool broadcast_values(const Grid& grid, std::int64_t converged, Real* values, std::int64_t count) {
  counted::broadcast(*grid.all, &converged, sizeof converged, 0);
  counted::broadcast(*grid.all, values, count * static_cast<std::int64_t>(sizeof(Real)), 0);
  return converged != 0;
}
inline void predict_values(ReceivedBytes& traffic, int me, std::int64_t bytes) {
  traffic.broadcast.add(me == 0 ? 0 : 8);
  traffic.broadcast.add(me == 0 ? 0 : bytes);
}

}  // namespace tessera::factor
