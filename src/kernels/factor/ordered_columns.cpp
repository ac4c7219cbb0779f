#include "kernels/factor/ordered_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessera::kernels::ordered {
namespace {

// Products of complex numbers without std::complex's checks for infinities.
template <class T> T times(T a, T b) {
  if constexpr (complex_type<T>)
    return {a.real() * b.real() + -a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}
template <class T> real_of<T> imaginary_part(T a) {
  if constexpr (complex_type<T>)
    return a.imag();
  else
    return 0;
}
template <class T> real_of<T> magnitude(T a) { return std::abs(real_part(a)) + std::abs(imaginary_part(a)); }
template <class T> T with_parts(real_of<T> re, [[maybe_unused]] real_of<T> im) {
  if constexpr (complex_type<T>)
    return {re, im};
  else
    return re;
}

template <class T> void subtract(std::int64_t n, T factor, const T* from, T* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] -= times(from[i], factor);
}

// x^H y in eight sums side by side.
template <class T> T dot(std::int64_t n, const T* x, const T* y) {
  constexpr std::int64_t lanes = 8;
  T sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sums[l] += times(conjugate(x[i + l]), y[i + l]);
  for (; i < n; ++i) sums[0] += times(conjugate(x[i]), y[i]);
  for (std::int64_t half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}

// The norm of a vector without overflow; NaN where an element is.
template <class T> double norm(std::int64_t n, const T* x) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double here =
        std::max<double>(std::abs(real_part(x[i])), std::abs(static_cast<double>(imaginary_part(x[i]))));
    if (!(here <= largest)) largest = here;
  }
  if (largest == 0 || !(largest <= std::numeric_limits<double>::max())) return largest;
  const int exponent = largest < 1e-100 || largest > 1e100 ? -std::ilogb(largest) : 0;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double re = real_part(x[i]), im = imaginary_part(x[i]);
    if (exponent != 0) re = std::scalbn(re, exponent), im = std::scalbn(im, exponent);
    sum += re * re;
    if constexpr (complex_type<T>) sum += im * im;
  }
  return std::scalbn(std::sqrt(sum), -exponent);
}

// H = I - tau v v^H with v = (1, x...) after the call, and H^H (alpha, x) = (beta, 0): alpha becomes beta.
template <class T> T make_reflector(std::int64_t n, T& alpha, T* x) {
  using R = real_of<T>;
  const double below = norm(n, x), re = real_part(alpha), im = imaginary_part(alpha);
  if (below == 0 && im == 0) return T(0);
  const double whole = std::hypot(std::hypot(re, im), below), beta = re >= 0 ? -whole : whole;
  const T tau = with_parts<T>(static_cast<R>((beta - re) / beta), static_cast<R>(-im / beta));
  const double from_re = re - beta, square = from_re * from_re + im * im;
  if (im == 0 || !(square > 1e-290 && square < 1e290)) {
    for (std::int64_t i = 0; i < n; ++i)
      if constexpr (complex_type<T>) {
        x[i] /= T(static_cast<R>(from_re), static_cast<R>(im));
      } else
        x[i] = static_cast<R>(x[i] / from_re);
  } else {
    const T scale = with_parts<T>(static_cast<R>(from_re / square), static_cast<R>(-im / square));
    for (std::int64_t i = 0; i < n; ++i) x[i] = times(x[i], scale);
  }
  alpha = T(static_cast<R>(beta));
  return tau;
}

}  // namespace

template <class T>
std::int64_t lu_columns(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, std::int64_t* exchanged) {
  std::int64_t zero_pivot = -1;
  for (std::int64_t j = 0; j < n; ++j) {
    T* const column = a + j * ld;
    std::int64_t best = j;
    for (std::int64_t i = j + 1; i < m; ++i)
      if (magnitude(column[i]) > magnitude(column[best])) best = i;
    exchanged[j] = best;
    if (magnitude(column[best]) == 0) {
      if (zero_pivot < 0) zero_pivot = j;
      continue;
    }
    if (best != j)
      for (std::int64_t c = 0; c < n; ++c) std::swap(a[j + c * ld], a[best + c * ld]);
    for (std::int64_t i = j + 1; i < m; ++i) column[i] /= column[j];
    for (std::int64_t c = j + 1; c < n; ++c)
      subtract(m - j - 1, a[j + c * ld], column + j + 1, a + j + 1 + c * ld);
  }
  return zero_pivot;
}

template <class T> void solve_triangle(bool lower, bool unit_diagonal, std::int64_t n, std::int64_t columns,
                                       const T* a, std::int64_t lda, T* b, std::int64_t ldb) {
  for (std::int64_t c = 0; c < columns; ++c) {
    T* const x = b + c * ldb;
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t j = lower ? step : n - 1 - step;
      if (!unit_diagonal) x[j] /= a[j + j * lda];
      if (lower)
        subtract(n - j - 1, x[j], a + j + 1 + j * lda, x + j + 1);
      else
        subtract(j, x[j], a + j * lda, x);
    }
  }
}

template <class T> void solve_adjoint_right(std::int64_t m, std::int64_t n, const T* l, std::int64_t ldl,
                                            T* b, std::int64_t ldb) {
  for (std::int64_t j = 0; j < n; ++j) {
    T* const column = b + j * ldb;
    const T pivot = conjugate(l[j + j * ldl]);
    for (std::int64_t i = 0; i < m; ++i) column[i] /= pivot;
    for (std::int64_t c = j + 1; c < n; ++c) subtract(m, conjugate(l[c + j * ldl]), column, b + c * ldb);
  }
}

template <class T> std::int64_t cholesky_block(std::int64_t n, T* a, std::int64_t ld) {
  for (std::int64_t j = 0; j < n; ++j) {
    T* const column = a + j * ld;
    const auto pivot = real_part(column[j]);
    if (!(pivot > 0)) return j;
    const auto root = std::sqrt(pivot);
    column[j] = T(root);
    for (std::int64_t i = j + 1; i < n; ++i) column[i] /= root;
    for (std::int64_t c = j + 1; c < n; ++c)
      subtract(n - c, conjugate(column[c]), column + c, a + c + c * ld);
  }
  return -1;
}

template <class T>
void qr_columns(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* t, std::int64_t ldt) {
  for (std::int64_t j = 0; j < n; ++j) {
    T *const diagonal = a + j + j * ld, *const v = diagonal + 1;
    const std::int64_t below = m - j - 1;
    const T tau = make_reflector(below, *diagonal, v);
    for (std::int64_t c = j + 1; c < n && tau != T(0); ++c) {
      T* const to = a + j + c * ld;
      const T factor = times(conjugate(tau), to[0] + dot(below, v, to + 1));
      to[0] -= factor;
      subtract(below, factor, v, to + 1);
    }
    // t[0:j, j] = -tau t[0:j, 0:j] (v_0 ... v_j-1)^H v_j
    T* const last = t + j * ldt;
    for (std::int64_t c = 0; c < j; ++c) {
      const T* const earlier = a + j + c * ld;
      last[c] = times(-tau, conjugate(earlier[0]) + dot(below, earlier + 1, v));
    }
    for (std::int64_t r = 0; r < j; ++r) {
      T sum = T(0);
      for (std::int64_t c = r; c < j; ++c) sum += times(t[r + c * ldt], last[c]);
      last[r] = sum;
    }
    last[j] = tau;
    std::fill(last + j + 1, last + n, T(0));
  }
}

#define TESSERA_INSTANTIATE(T)                                                                        \
  template std::int64_t lu_columns<T>(std::int64_t, std::int64_t, T*, std::int64_t, std::int64_t*);   \
  template void solve_triangle<T>(bool, bool, std::int64_t, std::int64_t, const T*, std::int64_t, T*, \
                                  std::int64_t);                                                      \
  template void solve_adjoint_right<T>(std::int64_t, std::int64_t, const T*, std::int64_t, T*,        \
                                       std::int64_t);                                                 \
  template std::int64_t cholesky_block<T>(std::int64_t, T*, std::int64_t);                            \
  template void qr_columns<T>(std::int64_t, std::int64_t, T*, std::int64_t, T*, std::int64_t);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels::ordered
