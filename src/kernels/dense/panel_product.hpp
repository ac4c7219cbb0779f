// Products with a panel: few columns (or rows) times a large matrix, as the factorizations need them over
// and over.
//
//   c (m x n) -= a (m x k) * b (k x n),   c column-major, k up to a few hundred
//
// The left operand is packed once and used for many columns. Real types run on vectors of this library's
// own, for the widest instruction set that the CPU has; complex ones go to BLAS.
#pragma once
#include <complex>
#include <cstdint>
#include <limits>

#include "types/buffer.hpp"

namespace tessera::kernels {

// Element (i, j) lies at data[i * row_step + j * column_step]; one of the steps is 1.
template <class T> struct Steps {
  const T* data;
  std::int64_t row_step, column_step;
  bool conjugate = false;
};

// The rows of a product's left operand, in the order in which the vector unit reads them: strips of some
// rows, each column by column, for as much depth at a time as stays cached.
template <class T> class PackedPanel {
 public:
  void pack(std::int64_t rows, std::int64_t depth, Steps<T> a);
  std::int64_t rows() const { return rows_; }
  std::int64_t depth() const { return depth_; }

  // c = a * b
  void product(std::int64_t columns, Steps<T> b, T* c, std::int64_t ldc) const;
  // c -= a[first_row:first_row + rows, :] * b. With `diagonal`, c is a trapezoid: rows above diagonal + j of
  // column j need not be computed (some are).
  static constexpr std::int64_t no_diagonal = std::numeric_limits<std::int64_t>::min() / 2;
  void subtract_product(std::int64_t first_row, std::int64_t rows, std::int64_t columns, Steps<T> b, T* c,
                        std::int64_t ldc, std::int64_t diagonal = no_diagonal) const;

 private:
  void add(T alpha, std::int64_t first_row, std::int64_t rows, std::int64_t columns, Steps<T> b, T* c,
           std::int64_t ldc, std::int64_t diagonal) const;
  std::int64_t rows_ = 0, depth_ = 0;
  Buffer values_;
};

// c = a * b (m x k, k x n) or c += alpha a * b.
template <class T> void product(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Steps<T> a,
                                Steps<T> b, bool accumulate, T* c, std::int64_t ldc);

}  // namespace tessera::kernels
