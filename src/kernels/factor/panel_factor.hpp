// One rank's part of the dense factorizations: tall panels, and triangular systems with a panel's corner. All
// functions recurse until few columns are left, so that most of the work is products. Column-major. With
// SumOrder::fixed no sum is made by LAPACK or BLAS, and a column's result does not depend on the number of
// other columns.
#pragma once
#include <cstdint>

#include "kernels/dense/panel_product.hpp"

namespace tessera::kernels {

// P L U of m x n in place, n <= m. exchanged[j]: the row, from 0, that row j was exchanged with. Returns the
// first step with a zero pivot, or -1.
template <class T> std::int64_t lu_panel(std::int64_t m, std::int64_t n, T* a, std::int64_t ld,
                                         std::int64_t* exchanged, SumOrder order = SumOrder::any);
// Applies the exchanges to columns: rows first + j and exchanged[j], for j < count.
template <class T> void exchange_rows(std::int64_t columns, T* a, std::int64_t ld, std::int64_t first,
                                      std::int64_t count, const std::int64_t* exchanged);

// L X = B in place of B (n x columns), L unit lower triangular.
template <class T> void solve_unit_lower(std::int64_t n, std::int64_t columns, const T* l, std::int64_t ldl,
                                         T* b, std::int64_t ldb, SumOrder order = SumOrder::any);
// A X = B in place of B (n x columns) for the lower or upper triangle of A, in the fixed order.
template <class T> void solve_ordered_triangle(bool lower, bool unit_diagonal, std::int64_t n,
                                               std::int64_t columns, const T* a, std::int64_t lda, T* b,
                                               std::int64_t ldb);
// X L^H = B in place of B (m x n), L lower triangular.
template <class T> void solve_adjoint_right(std::int64_t m, std::int64_t n, const T* l, std::int64_t ldl,
                                            T* b, std::int64_t ldb, SumOrder order = SumOrder::any);

// Householder QR of m x n in place: R above, the reflectors below the diagonal; t (n x n, upper triangular,
// zeros below) with Q = I - V t V^H. n <= m.
template <class T> void qr_panel(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* t,
                                 std::int64_t ldt, SumOrder order = SumOrder::any);
// The reflectors as a full matrix: ones on the diagonal, zeros above.
template <class T>
void copy_reflectors(std::int64_t m, std::int64_t n, const T* a, std::int64_t ld, T* v, std::int64_t ldv);
// c (m x columns) := (I - v t v^H) c, or with t^H (`adjoint`); v (m x n) is a full matrix.
template <class T> void reflect(std::int64_t m, std::int64_t columns, std::int64_t n, const T* v,
                                std::int64_t ldv, const T* t, std::int64_t ldt, bool adjoint, T* c,
                                std::int64_t ldc, SumOrder order = SumOrder::any);

// The same v for many blocks of columns: packed once in both orders in which the products read it.
template <class T> class PackedReflectors {
 public:
  void pack(std::int64_t m, std::int64_t n, const T* v, std::int64_t ldv, SumOrder order = SumOrder::any);
  void reflect(std::int64_t columns, const T* t, std::int64_t ldt, bool adjoint, T* c,
               std::int64_t ldc) const;

 private:
  SumOrder order_ = SumOrder::any;
  PackedPanel<T> v_, v_adjoint_;
};

}  // namespace tessera::kernels
