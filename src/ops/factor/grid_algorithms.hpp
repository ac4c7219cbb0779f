// Factorizations of one matrix by the ranks of a grid. Collective over the grid. Templates over float,
// double and their complex types.
#pragma once
#include <functional>

#include "ops/factor/grid.hpp"

namespace tessera::factor {

// A = P L U in place, right-looking with the next panel factored ahead. Extra columns of `a` (right-hand
// sides, with rows scattered as a's) take part in the exchanges and the elimination. pivots[j]: the row that
// row j was exchanged with at step j. apply_left: exchange rows in the finished columns too, as LAPACK does;
// a solve does not need it. Returns the first step whose pivot is zero, or -1.
template <class T> std::int64_t lu(const Grid&, GridMatrix<T>& a, std::int64_t extra_columns, bool apply_left,
                                   std::vector<std::int64_t>& pivots);

// A X = B in place of B for the lower or upper triangle of A. B's rows are scattered as A's.
// For many right-hand sides: their columns are scattered over the grid columns, panels of A are sent.
template <class T> void substitute(const Grid&, const GridMatrix<T>& a, bool lower, bool unit_diagonal, T* b,
                                   std::int64_t ldb, std::int64_t local_columns);
// For few right-hand sides: all k columns are on grid column 0, A stays in place, partial sums are sent.
template <class T> void substitute_few(const Grid&, const GridMatrix<T>& a, bool lower, bool unit_diagonal,
                                       T* b, std::int64_t ldb, std::int64_t k);
// The choice between the two, and how the columns of B are scattered. A fixed order has no partial sums.
struct RightSides {
  RightSides(GridShape, const CyclicDim& rows, std::int64_t k, kernels::SumOrder = kernels::SumOrder::any);
  BlockCyclic layout;
  bool few;
};

// Factors the lower triangle of a Hermitian matrix in place: L with L L^H = A; the strictly upper part of `a`
// becomes zero. Returns the first pivot that is not positive, or -1.
template <class T> std::int64_t cholesky(const Grid&, GridMatrix<T>& a);

// Householder QR on a grid of one row: a's columns are scattered over the ranks. When r_is_there is called, R
// is in a's upper triangle (and the reflectors below). Then q (m x kq), kq = q.layout.columns.extent,
// receives the orthonormal columns; it may be a itself if a has no fewer columns.
template <class T>
void qr(const Grid&, GridMatrix<T>& a, GridMatrix<T>& q, const std::function<void()>& r_is_there);

}  // namespace tessera::factor
