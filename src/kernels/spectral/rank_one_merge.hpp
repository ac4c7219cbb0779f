// The eigenvalues and vectors of diag(d) + rho z z^T, by which divide and conquer joins two tridiagonal
// matrices (Cuppen; Gu and Eisenstat 1995). Everything that depends on d and z alone is here; the products
// with the halves' vectors are the caller's, who may hold any of their rows.
//
//   [T1     ]   =  Q diag(d) Q^T + rho z z^T,   z = [last row of Q1, first row of Q2]
//   [     T2]
//   vectors = Q [columns(j) of the roots | columns of the values that are kept]
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels {

template <class R> class RankOneMerge {
 public:
  // d: the halves' eigenvalues, the first of `top` elements; coupling: the subdiagonal element between them,
  // whose absolute value both halves have lost at their common corner.
  RankOneMerge(std::vector<R> d, std::vector<R> z, std::int64_t top, R coupling);

  // A rotation of two columns of Q that comes before everything else: (p, q) := (c p + s q, c q - s p).
  struct Rotation {
    std::int64_t p, q;
    R c, s;
  };
  const std::vector<Rotation>& rotations() const { return rotations_; }
  // The columns of Q of which the roots' vectors are combinations, by index into the sorted poles.
  const std::vector<std::int64_t>& columns() const { return columns_; }
  // The columns whose rows in the upper (or lower) half are not zero, by index into columns().
  std::vector<std::int64_t> filled(bool in_top) const;
  std::int64_t roots() const { return static_cast<std::int64_t>(columns_.size()); }

  // A root as the distance from its closest pole.
  struct Root {
    std::int64_t pole;
    R distance;
  };
  // False: no convergence.
  bool find_root(std::int64_t index, Root& root) const;
  // Takes all roots, found here or elsewhere.
  void take(std::vector<Root> roots);

  // After take: where each vector comes from, in ascending order of the values. index < roots(): a root, else
  // column -1 - index of Q unchanged.
  struct Source {
    R value;
    std::int64_t root, column;  // the other is -1
  };
  const std::vector<Source>& order() const { return order_; }
  // The rows `places` of the vectors of some roots in terms of columns(): places.size() x count,
  // column-major.
  void vectors(const std::vector<std::int64_t>& places, const std::int64_t* roots, std::int64_t count,
               R* to) const;

 private:
  void deflate(std::int64_t top);
  std::vector<R> d_, z_;
  R rho_ = 0;
  enum class Rows : char { top, both, bottom };
  std::vector<Rows> rows_;  // of each column of Q
  std::vector<std::int64_t> columns_, kept_;
  std::vector<Rotation> rotations_;
  std::vector<R> poles_, weights_, norms_;
  std::vector<Root> roots_;
  std::vector<Source> order_;
};

// All eigenvalues and vectors (column-major, n x n) of a tridiagonal matrix, or its values alone; d and e are
// destroyed. False: no convergence.
template <class R> bool tridiagonal_eigh(std::int64_t n, R* d, R* e, R* vectors);
template <class R> bool tridiagonal_eigenvalues(std::int64_t n, R* d, R* e);

}  // namespace tessera::kernels
