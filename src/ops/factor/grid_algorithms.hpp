// Factorizations of one matrix by the ranks of a grid. Collective over the grid. Templates over float,
// double and their complex types.
#pragma once
#include <functional>

#include "ops/factor/grid.hpp"

namespace tessera::factor {

// A = P L U in place, right-looking with the next panel factored ahead. Columns that lie in `a` behind its
// own (right-hand sides, with rows dealt as a's) take part in the exchanges and the elimination. pivots[j]:
// the row that row j was exchanged with at step j. apply_left: exchange rows in the finished columns too, as
// LAPACK does; a solve needs that not. Returns the first step whose pivot is zero, or -1.
template <class T> std::int64_t lu(const Grid&, GridMatrix<T>& a, std::int64_t extra_columns, bool apply_left,
                                   std::vector<std::int64_t>& pivots);

// A X = B in place of B for the lower or upper triangle of A. B has its rows dealt as A's.
// Many right-hand sides: their columns are spread over the grid columns, panels of A travel.
template <class T> void substitute(const Grid&, const GridMatrix<T>& a, bool lower, bool unit_diagonal, T* b,
                                   std::int64_t ldb, std::int64_t local_columns);
// Few: all k columns lie on grid column 0, A stays where it is, partial sums travel.
template <class T> void substitute_few(const Grid&, const GridMatrix<T>& a, bool lower, bool unit_diagonal,
                                       T* b, std::int64_t ldb, std::int64_t k);
// Which of the two, and how the columns of B are dealt.
struct RightSides {
  RightSides(GridShape, const CyclicDim& rows, std::int64_t k);
  BlockCyclic layout;
  bool few;
};

// The lower triangle of a Hermitian matrix -> L with L L^H = A; the strictly upper part of `a` comes out as
// zeros. Returns the first pivot that is not positive, or -1.
template <class T> std::int64_t cholesky(const Grid&, GridMatrix<T>& a);

// Householder QR on a grid of one row: a's columns are dealt over the ranks. When r_is_there is called, R is
// in a's upper triangle (and the reflectors below). Then q (m x kq) gets the orthonormal columns, kq =
// q.layout.columns.extent; it may be a itself when a has no fewer columns.
template <class T>
void qr(const Grid&, GridMatrix<T>& a, GridMatrix<T>& q, const std::function<void()>& r_is_there);

}  // namespace tessera::factor
