#include "kernels/factor/panel_factor.hpp"

#include <algorithm>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/ordered_columns.hpp"
#include "kernels/factor/panel_solve.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t narrow = 16;  // columns that LAPACK factors
constexpr std::int64_t corner = 32;  // rows of triangular systems that BLAS solves
constexpr std::int64_t few = 8;      // columns, or rows of systems, that plain loops work on
constexpr std::int64_t in_vectors =
    64;  // columns of real systems whose strips of rows stay in the first-level cache

int to_int(std::int64_t n) { return static_cast<int>(n); }

}  // namespace

template <class T> void exchange_rows(std::int64_t columns, T* a, std::int64_t ld, std::int64_t first,
                                      std::int64_t count, const std::int64_t* exchanged) {
  for (std::int64_t j = 0; j < columns; ++j) {
    T* column = a + j * ld;
    for (std::int64_t i = 0; i < count; ++i) std::swap(column[first + i], column[exchanged[i]]);
  }
}

template <class T> std::int64_t lu_panel(std::int64_t m, std::int64_t n, T* a, std::int64_t ld,
                                         std::int64_t* exchanged, SumOrder order) {
  const bool is_fixed = order == SumOrder::fixed;
  const std::int64_t step = is_fixed ? few : narrow;
  if (is_fixed && n <= few) return ordered::lu_columns(m, n, a, ld, exchanged);
  if (n <= narrow && !is_fixed) {
    int pivots[narrow];
    const int info = lapack::getrf(to_int(m), to_int(n), a, to_int(ld), pivots);
    for (std::int64_t j = 0; j < n; ++j) exchanged[j] = pivots[j] - 1;
    return info > 0 ? info - 1 : -1;
  }
  const std::int64_t left = (n / 2 + step - 1) / step * step, right = n - left;
  T* const a12 = a + left * ld;
  std::int64_t zero_pivot = lu_panel(m, left, a, ld, exchanged, order);
  exchange_rows(right, a12, ld, 0, left, exchanged);
  solve_unit_lower(left, right, a, ld, a12, ld, order);
  product<T>(m - left, right, left, T(-1), {a + left, 1, ld}, {a12, 1, ld}, true, a12 + left, ld, order);
  const std::int64_t later = lu_panel(m - left, right, a12 + left, ld, exchanged + left, order);
  for (std::int64_t j = left; j < n; ++j) exchanged[j] += left;
  exchange_rows(left, a, ld, left, right, exchanged + left);
  if (zero_pivot < 0 && later >= 0) zero_pivot = left + later;
  return zero_pivot;
}

template <class T> void solve_unit_lower(std::int64_t n, std::int64_t columns, const T* l, std::int64_t ldl,
                                         T* b, std::int64_t ldb, SumOrder order) {
  if (order == SumOrder::fixed) return solve_ordered_triangle(true, true, n, columns, l, ldl, b, ldb);
  if (n <= corner || columns < 8)
    return lapack::trsm(true, 'N', true, to_int(n), to_int(columns), l, to_int(ldl), b, to_int(ldb));
  const std::int64_t top = (n / 2 + 7) / 8 * 8;
  solve_unit_lower(top, columns, l, ldl, b, ldb);
  product<T>(n - top, columns, top, T(-1), {l + top, 1, ldl}, {b, 1, ldb}, true, b + top, ldb);
  solve_unit_lower(n - top, columns, l + top + top * ldl, ldl, b + top, ldb);
}

template <class T> void solve_ordered_triangle(bool lower, bool unit_diagonal, std::int64_t n,
                                               std::int64_t columns, const T* a, std::int64_t lda, T* b,
                                               std::int64_t ldb) {
  if (n <= few) return ordered::solve_triangle(lower, unit_diagonal, n, columns, a, lda, b, ldb);
  const std::int64_t top = (n / 2 + few - 1) / few * few;
  const auto part = [&](std::int64_t first, std::int64_t count) {
    solve_ordered_triangle(lower, unit_diagonal, count, columns, a + first + first * lda, lda, b + first,
                           ldb);
  };
  const auto subtract = [&](std::int64_t to, std::int64_t rows, std::int64_t from, std::int64_t depth) {
    product<T>(rows, columns, depth, T(-1), {a + to + from * lda, 1, lda}, {b + from, 1, ldb}, true, b + to,
               ldb, SumOrder::fixed);
  };
  if (lower)
    part(0, top), subtract(top, n - top, 0, top), part(top, n - top);
  else
    part(top, n - top), subtract(0, top, top, n - top), part(0, top);
}

template <class T> void solve_adjoint_right(std::int64_t m, std::int64_t n, const T* l, std::int64_t ldl,
                                            T* b, std::int64_t ldb, SumOrder order) {
  const bool is_fixed = order == SumOrder::fixed;
  if (is_fixed && n <= few) return ordered::solve_adjoint_right(m, n, l, ldl, b, ldb);
  if constexpr (!complex_type<T>)
    if (!is_fixed && n <= in_vectors) return solve_transposed_right(m, n, l, ldl, b, ldb);
  if (!is_fixed && (n <= corner || m < 8))
    return lapack::trsm_right(true, 'C', false, to_int(m), to_int(n), l, to_int(ldl), b, to_int(ldb));
  const std::int64_t left = (n / 2 + 7) / 8 * 8;
  solve_adjoint_right(m, left, l, ldl, b, ldb, order);
  product<T>(m, n - left, left, T(-1), {b, 1, ldb}, {l + left, ldl, 1, true}, true, b + left * ldb, ldb,
             order);
  solve_adjoint_right(m, n - left, l + left + left * ldl, ldl, b + left * ldb, ldb, order);
}

template <class T>
void copy_reflectors(std::int64_t m, std::int64_t n, const T* a, std::int64_t ld, T* v, std::int64_t ldv) {
  for (std::int64_t j = 0; j < n; ++j) {
    T* column = v + j * ldv;
    std::fill(column, column + j, T(0));
    column[j] = T(1);
    std::copy(a + j + 1 + j * ld, a + m + j * ld, column + j + 1);
  }
}

template <class T>
void PackedReflectors<T>::pack(std::int64_t m, std::int64_t n, const T* v, std::int64_t ldv, SumOrder order) {
  order_ = order;
  v_.pack(m, n, {v, 1, ldv}, order);
  v_adjoint_.pack(n, m, {v, ldv, 1, true}, order);
}

template <class T> void PackedReflectors<T>::reflect(std::int64_t columns, const T* t, std::int64_t ldt,
                                                     bool adjoint, T* c, std::int64_t ldc) const {
  const std::int64_t m = v_.rows(), n = v_.depth();
  if (m == 0 || columns == 0 || n == 0) return;
  Buffer memory = Buffer::allocate((2 * n * columns) * sizeof(T));
  T *along = reinterpret_cast<T*>(memory.data()), *scaled = along + n * columns;
  const Steps<T> by_rows{t, 1, ldt}, by_columns{t, ldt, 1, true};
  v_adjoint_.product(columns, {c, 1, ldc}, along, n);
  product<T>(n, columns, n, T(1), adjoint ? by_columns : by_rows, {along, 1, n}, false, scaled, n, order_);
  v_.subtract_product(0, m, columns, {scaled, 1, n}, c, ldc);
}

template <class T> void reflect(std::int64_t m, std::int64_t columns, std::int64_t n, const T* v,
                                std::int64_t ldv, const T* t, std::int64_t ldt, bool adjoint, T* c,
                                std::int64_t ldc, SumOrder order) {
  PackedReflectors<T> packed;
  packed.pack(m, n, v, ldv, order);
  packed.reflect(columns, t, ldt, adjoint, c, ldc);
}

template <class T>
void qr_panel(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* t, std::int64_t ldt, SumOrder order) {
  const bool is_fixed = order == SumOrder::fixed;
  const std::int64_t step = is_fixed ? few : narrow;
  if (is_fixed && n <= few) return ordered::qr_columns(m, n, a, ld, t, ldt);
  if (n <= narrow && !is_fixed) {
    T tau[narrow], work[narrow * narrow];
    lapack::geqrf(to_int(m), to_int(n), a, to_int(ld), tau, work, to_int(narrow * narrow));
    for (std::int64_t j = 0; j < n; ++j) std::fill(t + j * ldt, t + j * ldt + n, T(0));
    lapack::larft(to_int(m), to_int(n), a, to_int(ld), tau, t, to_int(ldt));
    return;
  }
  // Q = (I - V1 T1 V1^H) (I - V2 T2 V2^H):  t = [T1, -T1 V1^H V2 T2; 0, T2]
  const std::int64_t left = (n / 2 + step - 1) / step * step, right = n - left, below = m - left;
  T* const a12 = a + left * ld;
  qr_panel(m, left, a, ld, t, ldt, order);
  Buffer memory = Buffer::allocate((m * left + below * right + 2 * left * right) * sizeof(T));
  T *v1 = reinterpret_cast<T*>(memory.data()), *v2 = v1 + m * left, *between = v2 + below * right,
    *scaled = between + left * right;
  copy_reflectors(m, left, a, ld, v1, m);
  reflect(m, right, left, v1, m, t, ldt, true, a12, ld, order);
  T* const t22 = t + left + left * ldt;
  qr_panel(below, right, a12 + left, ld, t22, ldt, order);
  copy_reflectors(below, right, a12 + left, ld, v2, below);
  product<T>(left, right, below, T(1), {v1 + left, m, 1, true}, {v2, 1, below}, false, between, left, order);
  product<T>(left, right, right, T(-1), {between, 1, left}, {t22, 1, ldt}, false, scaled, left, order);
  product<T>(left, right, left, T(1), {t, 1, ldt}, {scaled, 1, left}, false, t + left * ldt, ldt, order);
  for (std::int64_t j = 0; j < left; ++j) std::fill(t + left + j * ldt, t + n + j * ldt, T(0));
}

#define TESSERA_INSTANTIATE(T)                                                                               \
  template class PackedReflectors<T>;                                                                        \
  template std::int64_t lu_panel<T>(std::int64_t, std::int64_t, T*, std::int64_t, std::int64_t*, SumOrder);  \
  template void exchange_rows<T>(std::int64_t, T*, std::int64_t, std::int64_t, std::int64_t,                 \
                                 const std::int64_t*);                                                       \
  template void solve_unit_lower<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T*, std::int64_t,    \
                                    SumOrder);                                                               \
  template void solve_ordered_triangle<T>(bool, bool, std::int64_t, std::int64_t, const T*, std::int64_t,    \
                                          T*, std::int64_t);                                                 \
  template void solve_adjoint_right<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T*, std::int64_t, \
                                       SumOrder);                                                            \
  template void qr_panel<T>(std::int64_t, std::int64_t, T*, std::int64_t, T*, std::int64_t, SumOrder);       \
  template void copy_reflectors<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T*, std::int64_t);    \
  template void reflect<T>(std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, const T*,       \
                           std::int64_t, bool, T*, std::int64_t, SumOrder);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
