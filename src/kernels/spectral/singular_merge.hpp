// The singular values and vectors of a bidiagonal matrix from those of its halves (Gu and Eisenstat 1995).
// Everything that depends on singular values and weights alone is here; the products with the halves' vectors
// are the caller's, who may hold any of their rows.
//
//   upper bidiagonal   [B1            ]   B1 has one column more than rows, so a null vector, its last one;
//                      [ alpha | beta ]   B2 may have one too
//                      [       |  B2  ]
//   =  U M V^T  with M zero but for its diagonal of singular values and its row of weights
//      [alpha (last row of V1) | beta (first row of V2)]
//   The row between the halves is the left vector that belongs to the upper half's null vector.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels {

// The columns of one side's vectors that are rotated before everything else: (p, q) := (c p + s q, c q - s
// p).
template <class R> struct ColumnRotation {
  std::int64_t p, q;
  R c, s;
};

template <class R> class SingularMerge {
 public:
  enum class Side { left, right };
  // The row between the halves.
  struct Between {
    R alpha, beta;
  };
  // d: the halves' singular values, the first of `top` elements, and zeros for their null vectors, which come
  // last; z: the last row of V1 and the first row of V2. is_wide: B2 has a null vector.
  SingularMerge(std::vector<R> d, std::vector<R> z, std::int64_t top, Between, bool is_wide);

  const std::vector<ColumnRotation<R>>& rotations(Side side) const {
    return side == Side::left ? left_rotations_ : right_rotations_;
  }
  // The columns of U and V of which the roots' vectors are combinations.
  const std::vector<std::int64_t>& columns() const { return columns_; }
  // The columns whose rows in the upper (or lower) half are not zero, by index into columns().
  std::vector<std::int64_t> filled(bool in_top) const;
  std::int64_t roots() const { return static_cast<std::int64_t>(columns_.size()); }

  // A root as the distance from its closest pole.
  struct Root {
    std::int64_t pole;
    R distance;
  };
  Root find_root(std::int64_t index) const;
  // Takes all roots, found here or elsewhere.
  void take(std::vector<Root> roots);

  // After take: where each vector comes from, in descending order of the values, a null vector last. One of
  // root and column (of U and V unchanged) is -1.
  struct Source {
    R value;
    std::int64_t root, column;
  };
  const std::vector<Source>& order() const { return order_; }
  // The rows `places` of some roots' vectors in terms of columns(): places.size() x count, column-major.
  void vectors(Side, const std::vector<std::int64_t>& places, const std::int64_t* roots, std::int64_t count,
               R* to) const;

 private:
  void deflate(std::int64_t top, R tolerance);
  // (pole - root) (pole + root)
  struct Gap {
    R from, distance;
    R operator()(R pole) const { return ((pole - from) - distance) * ((pole + from) + distance); }
  };
  Gap gap_to(const Root& root) const { return {poles_[root.pole], root.distance}; }
  std::vector<R> d_, z_;
  double rho_ = 0;
  bool is_wide_;
  enum class Rows : char { top, both, bottom };
  std::vector<Rows> rows_;  // of each column
  std::vector<std::int64_t> columns_, kept_;
  std::vector<ColumnRotation<R>> left_rotations_, right_rotations_;
  std::vector<R> poles_, weights_;
  std::vector<double> left_norms_, right_norms_;  // squares of float32 overflow
  std::vector<Root> roots_;
  std::vector<Source> order_;
};

// The svd of an upper bidiagonal matrix of n rows and, if it is wide, one column more (d: n, e: n - 1 or n;
// largest element about one). Column-major u (n rows) and v (n or n + 1 rows, a null vector last) with the
// same leading dimension; values: n, descending. Computed in float64. False: no convergence.
template <class R> bool bidiagonal_svd(std::int64_t n, bool is_wide, const R* d, const R* e, R* values, R* u,
                                       R* v, std::int64_t ld);
// The singular values alone, of a square one.
template <class R> bool bidiagonal_values(std::int64_t n, R* d, R* e);

}  // namespace tessera::kernels
