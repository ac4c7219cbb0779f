// Matrices that one rank works on alone, because it is done before several would be. Every rank takes what is
// its own of the results: that each computed them would give vectors of different signs where hosts have
// different CPUs.
#pragma once
#include "ops/factor/grid.hpp"

namespace tessera::factor {

// Whether one rank is done before `ranks` are, by measurement (AMD EPYC family 26; ScaLAPACK 2.2, one core a
// rank). `extent`: the smaller of the matrix.
enum class Spectrum { eigenvalues, eigenvectors, singular_values, singular_vectors };
bool is_quicker_alone(Spectrum wanted, std::int64_t extent, int ranks);
// While one lives, ranks work together whatever is quicker: for tests, on all ranks alike.
struct Together {
  Together();
  ~Together();
  Together(const Together&) = delete;
};

// One block on the first rank: (rows x columns), elsewhere nothing.
inline BlockCyclic one_block(GridShape grid, std::int64_t rows, std::int64_t columns) {
  return {{rows, std::max<std::int64_t>(rows, 1), grid.rows},
          {columns, std::max<std::int64_t>(columns, 1), grid.columns}};
}

// It in the order of rows, as kernels have it.
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

// What the first rank found is everybody's: whether it converged, and the values.
template <class Real>
bool tell_values(const Grid& grid, std::int64_t converged, Real* values, std::int64_t count) {
  counted::broadcast(*grid.all, &converged, sizeof converged, 0);
  counted::broadcast(*grid.all, values, count * static_cast<std::int64_t>(sizeof(Real)), 0);
  return converged != 0;
}
inline void hear_values(Received& heard, int me, std::int64_t bytes) {
  heard.broadcast.add(me == 0 ? 0 : 8);
  heard.broadcast.add(me == 0 ? 0 : bytes);
}

}  // namespace tessera::factor
