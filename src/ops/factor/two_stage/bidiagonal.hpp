// Singular values and vectors of one matrix with no fewer rows than columns by the ranks of a grid of one
// row, in two stages as the eigenvalues of two_stage.hpp.
//
//   A -> upper band     panels of QR from the left and LQ from the right in turns; reflectors are broadcast
//   band -> B           chased on the first rank (kernels/spectral/band_chase.hpp)
//   B = P diag(s) Q^T   divide and conquer: each rank holds rows of P and Q
//   U = Q1 Q2 P, V alike  each rank on its own columns; reflectors are broadcast
#pragma once
#include <algorithm>

#include "ops/factor/two_stage/two_stage.hpp"

namespace tessera::factor {

// The layout of an m x n matrix in both stages: whole columns, in blocks as wide as the band.
BlockCyclic bidiagonal_layout(std::int64_t m, std::int64_t n, int ranks);

// a (m x n, m >= n, elements at most about one, destroyed) = u (m x n) diag(s) v^H (v n x n); s descending,
// on every rank; u and v are both given or both null. False: no convergence. Collective over the grid.
template <class T>
bool svd_in_two_stages(const Grid&, GridMatrix<T>& a, real_of<T>* s, GridMatrix<T>* u, GridMatrix<T>* v);
void predict_bidiagonal(ReceivedBytes&, const GridRank&, std::int64_t real_itemsize, bool vectors);
// Elements that the first rank takes for the chase.
std::int64_t elements_of_chase(const BlockCyclic&, bool vectors);

// A = Q B P^H with an upper band B. a's columns keep the reflectors of Q below the diagonal.
template <class T> class UpperBandReduction {
 public:
  UpperBandReduction(const Grid& grid, GridMatrix<T>& a) : grid_(grid), a_(a) {}
  void reduce();
  // B's band as chase_upper_band takes it, on every rank.
  std::vector<T> band() const;
  // z := Q z or P z
  enum class Side { left, right };
  void apply(Side, GridMatrix<T>& z);

 private:
  std::int64_t m() const { return a_.layout.rows.extent; }
  std::int64_t n() const { return a_.layout.columns.extent; }
  std::int64_t width() const { return a_.layout.columns.block; }
  std::int64_t columns_from(std::int64_t index) const {
    return a_.layout.columns.count_below(grid_.column, std::min(index, n()));
  }
  void make_left(std::int64_t start, Reflectors<T>&);
  void send_left(std::int64_t start, Reflectors<T>&);
  // The LQ factors of rows start..start + width behind the panel; empty if they are a band already.
  void make_right(std::int64_t start, Reflectors<T>&);
  void send_right(std::int64_t start, Reflectors<T>&);
  void step(Reflectors<T>& left, Reflectors<T>& next);
  // T^H V^H A of my columns behind the panel; their rows of the panel are updated.
  std::vector<T> reflect_top(Reflectors<T>& left);
  // A V T for the rows below the panel, from every rank's columns, into column-major `to`.
  void project(Reflectors<T>& left, const std::vector<T>& zh, Reflectors<T>& right, T* to);
  const Grid& grid_;
  GridMatrix<T>& a_;
  std::vector<std::vector<T>> left_triangles_;  // of my panels
  std::vector<std::vector<T>> right_panels_;    // of the rows before my blocks of columns: [V][T]
};

// B = U diag(values) V^T for an upper bidiagonal matrix with elements at most about one. Returns this rank's
// rows of U and V and leaves the values, descending, in `diagonal` on every rank.
template <class R> bool divide_and_conquer_bidiagonal(const Grid&, std::vector<R>& diagonal,
                                                      const std::vector<R>& beside, SplitRows<R>& u,
                                                      SplitRows<R>& v);

}  // namespace tessera::factor
