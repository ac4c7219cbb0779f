// Eigenvalues and vectors of one Hermitian matrix by the ranks of a grid of one row, in two stages: nearly
// all of the work is products of panels.
//
//   A -> band         panels of QR, each applied from both sides; the panels' reflectors are broadcast
//   band -> T         chased on the first rank (kernels/spectral/band_chase.hpp)
//   T = U diag(w) U^T divide and conquer: each rank holds rows of U, so only weights and roots are sent
//   V = Q1 Q2 U       each rank on its own columns; reflectors are broadcast
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/spectral/band_chase.hpp"
#include "ops/factor/grid.hpp"
#include "ops/factor/reflectors.hpp"

namespace tessera::factor {

// The layout of both stages: whole columns, in blocks as wide as the band.
BlockCyclic two_stage_layout(std::int64_t n, int ranks);

// Lower triangle of a (destroyed; loaded by load_hermitian) -> ascending w (n, on every rank); vectors in z
// if it is given. False: no convergence. Collective over the grid.
template <class T> bool eigh_in_two_stages(const Grid&, GridMatrix<T>& a, real_of<T>* w, GridMatrix<T>* z);
// Loads the lower triangle of a Hermitian matrix, and all of the blocks on the diagonal, times 2^exponent, so
// that its largest element is about one. Elements above these blocks stay undefined. Returns the exponent.
template <class T> int load_hermitian(const Grid&, const Tiles&, const T* tile, GridMatrix<T>& a);
void predict_two_stages(ReceivedBytes&, const GridRank&, std::int64_t real_itemsize, bool vectors);

// Gathers the columns from `first` on to every rank, in order. `own`: this rank's columns, of `height`
// elements each. Collective.
template <class T> std::vector<T> gathered_columns(const Grid&, const CyclicDim& columns, std::int64_t first,
                                                   std::int64_t height, std::vector<T> own);

// Q1 of A = Q1 B Q1^H, B a band; a's columns below the band keep the reflectors.
template <class T> class BandReduction {
 public:
  BandReduction(const Grid& grid, GridMatrix<T>& a) : grid_(grid), a_(a) {}
  void reduce();
  // B's lower band in columns of 2 * width elements, on every rank.
  std::vector<T> band() const;
  // z := Q1 z
  void apply(GridMatrix<T>& z);

 private:
  std::int64_t n() const { return a_.layout.columns.extent; }
  std::int64_t width() const { return a_.layout.columns.block; }
  bool is_reduced(std::int64_t start) const { return start + width() + 1 >= n(); }
  void make(std::int64_t start, Reflectors<T>&);
  void send(std::int64_t start, Reflectors<T>&);
  void update(Reflectors<T>&, Reflectors<T>& next);
  std::vector<T> projected(Reflectors<T>&, std::int64_t first);
  const Grid& grid_;
  GridMatrix<T>& a_;
  std::vector<std::vector<T>> triangles_;  // of my panels
};

// T = U diag(values) U^T. Returns this rank's rows of U, column-major, and leaves the values on every rank.
template <class R> struct SplitRows {
  std::int64_t first = 0, count = 0;
  Pooled<R> vectors{0};
};
// The rows that rank `rank` of several holds.
Range rows_of_part(std::int64_t n, int ranks, int rank);
template <class R>
bool divide_and_conquer(const Grid&, std::vector<R>& diagonal, std::vector<R>& beside, SplitRows<R>& rows);

// Converts the matrix from rows (of each rank) to z's columns of this rank; elements of z in further rows
// keep their values.
template <class T> void by_columns(const Grid&, const SplitRows<real_of<T>>& rows, GridMatrix<T>& z);

// z := Q2 z, whose reflectors the first rank holds.
template <class T> struct ChasedBand {
  kernels::BandSweeps sweeps;
  Pooled<T> values{0}, taus{0};  // on the first rank
};
template <class T> void apply_sweeps(const Grid&, ChasedBand<T>&, GridMatrix<T>& z);

}  // namespace tessera::factor
