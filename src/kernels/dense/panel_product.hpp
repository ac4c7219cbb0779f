// Products with a panel: few columns (or rows) times a large matrix, the main work of the factorizations.
//
//   c (m x n) -= a (m x k) * b (k x n),   c column-major, k up to a few hundred
//
// The left operand is packed once and used for many columns. Real types use the library's own vector code for
// the CPU's widest instruction set; complex types use BLAS.
//
// The bits of an element of c (alpha 1 or -1) depend on its row of a, its column of b and k alone, not on its
// position: always for real types, for complex ones with SumOrder::fixed.
#pragma once
#include <complex>
#include <cstdint>
#include <limits>

#include "types/buffer.hpp"

namespace tessera::kernels {

// Element (i, j) is at data[i * row_step + j * column_step]; one of the steps is 1.
template <class T> struct Steps {
  const T* data;
  std::int64_t row_step, column_step;
  bool conjugate = false;
};

// Whether the order of sums depends neither on BLAS nor on an element's position: for a ReproducibleScope.
enum class SumOrder { any, fixed };

// The rows of a product's left operand, packed in the order in which the vector loop reads them: strips of
// rows, each column by column, in blocks of depth that stay in the cache.
template <class T> class PackedPanel {
 public:
  void pack(std::int64_t rows, std::int64_t depth, Steps<T> a, SumOrder order = SumOrder::any);
  std::int64_t rows() const { return rows_; }
  std::int64_t depth() const { return depth_; }

  // c = a * b
  void product(std::int64_t columns, Steps<T> b, T* c, std::int64_t ldc) const;
  // c -= a[first_row:first_row + rows, :] * b. With `diagonal`, c is a trapezoid: in column j, rows above
  // diagonal + j need not be computed (some are).
  static constexpr std::int64_t no_diagonal = std::numeric_limits<std::int64_t>::min() / 2;
  void subtract_product(std::int64_t first_row, std::int64_t rows, std::int64_t columns, Steps<T> b, T* c,
                        std::int64_t ldc, std::int64_t diagonal = no_diagonal) const;

 private:
  void add(T alpha, std::int64_t first_row, std::int64_t rows, std::int64_t columns, Steps<T> b, T* c,
           std::int64_t ldc, std::int64_t diagonal) const;
  std::int64_t rows_ = 0, depth_ = 0;
  SumOrder order_ = SumOrder::any;
  Buffer values_;
};

// c = a * b (m x k, k x n) or c += alpha a * b.
template <class T> void product(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Steps<T> a,
                                Steps<T> b, bool accumulate, T* c, std::int64_t ldc,
                                SumOrder order = SumOrder::any);

}  // namespace tessera::kernels
