#include "kernels/spectral/band_chase.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/spectral/chase_blocks.hpp"

namespace tessera::kernels {
namespace {

// y = a x or a^H x (m x n), y and x contiguous.
template <class T> void apply_dense(bool adjoint, int m, int n, const T* a, int ld, const T* x, T* y) {
  const T one(1), zero(0);
  variant<T>(cblas_sgemv, cblas_dgemv, cblas_cgemv, cblas_zgemv)(
      CblasColMajor, adjoint ? CblasConjTrans : CblasNoTrans, m, n, scalar(one), a, ld, x, 1, scalar(zero), y,
      1);
}
// a += alpha x y^H
template <class T> void add_outer(int m, int n, T alpha, const T* x, const T* y, T* a, int ld) {
  variant<T>(cblas_sger, cblas_dger, cblas_cgerc, cblas_zgerc)(CblasColMajor, m, n, scalar(alpha), x, 1, y, 1,
                                                               a, ld);
}
// y = a x for the lower triangle of a Hermitian matrix.
template <class T> void apply_hermitian(int n, const T* a, int ld, const T* x, T* y) {
  const T one(1), zero(0);
  variant<T>(cblas_ssymv, cblas_dsymv, cblas_chemv, cblas_zhemv)(CblasColMajor, CblasLower, n, scalar(one), a,
                                                                 ld, x, 1, scalar(zero), y, 1);
}
// a -= x y^H + y x^H in the lower triangle.
template <class T> void subtract_both(int n, const T* x, const T* y, T* a, int ld) {
  const T minus(-1);
  variant<T>(cblas_ssyr2, cblas_dsyr2, cblas_cher2, cblas_zher2)(CblasColMajor, CblasLower, n, scalar(minus),
                                                                 x, 1, y, 1, a, ld);
}

double square_of(double x) { return x * x; }
template <class T> double magnitude_squared(T x) {
  if constexpr (complex_type<T>)
    return square_of(x.real()) + square_of(x.imag());
  else
    return square_of(x);
}

// H^H x = beta e1 with H = I - tau v v^H: x becomes beta and zeros. The elements are at most about one.
template <class T> T reflector(std::int64_t n, T* x, T* v) {
  using R = real_of<T>;
  double below = 0;
  for (std::int64_t i = 1; i < n; ++i) below += magnitude_squared(x[i]);
  const T alpha = x[0];
  double real = 0, imaginary = 0;
  if constexpr (complex_type<T>)
    real = alpha.real(), imaginary = alpha.imag();
  else
    real = alpha;
  v[0] = T(1);
  std::fill(v + 1, v + n, T(0));
  const double norm = std::sqrt(square_of(real) + square_of(imaginary) + below);
  constexpr double negligible = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
  if ((below == 0 && imaginary == 0) || norm < negligible) {
    x[0] = T(static_cast<R>(real));
    std::fill(x + 1, x + n, T(0));
    return T(0);
  }
  const double beta = real >= 0 ? -norm : norm;
  const T scale = T(1) / (alpha - T(static_cast<R>(beta)));
  for (std::int64_t i = 1; i < n; ++i) v[i] = x[i] * scale, x[i] = T(0);
  x[0] = T(static_cast<R>(beta));
  if constexpr (complex_type<T>)
    return {static_cast<R>((beta - real) / beta), static_cast<R>(-imaginary / beta)};
  else
    return static_cast<R>((beta - real) / beta);
}

// The same with zeros behind v up to `width`.
template <class T> T padded_reflector(std::int64_t width, std::int64_t n, T* x, T* v) {
  std::fill(v + n, v + width, T(0));
  return reflector(n, x, v);
}

// d := H^H d H for the lower triangle of a Hermitian matrix.
template <class T> void reflect_both_sides(int n, const T* v, T tau, T* d, int ld, T* work) {
  if (tau == T(0)) return;
  apply_hermitian(n, d, ld, v, work);
  T dot(0);
  for (int i = 0; i < n; ++i) work[i] *= tau, dot += conjugate(work[i]) * v[i];
  const T half = tau * dot * T(static_cast<real_of<T>>(-0.5));
  for (int i = 0; i < n; ++i) work[i] += half * v[i];
  subtract_both(n, v, work, d, ld);
}

// A step's reflector is written behind its side's others, or to memory that the next step overwrites.
template <class T> class Writer {
 public:
  Writer(SideReflectors<T> to, std::int64_t width) : to_(to), own_(to.values == nullptr ? width : 0) {}
  T* place() { return to_.values != nullptr ? to_.values : own_.data(); }
  void keep(std::int64_t length, T tau) {
    if (to_.values != nullptr) to_.values += length, *to_.taus++ = tau;
  }
  void keep(std::int64_t length, const T* v, T tau) {
    if (to_.values == nullptr) return;
    std::copy_n(v, length, to_.values);
    keep(length, tau);
  }

 private:
  SideReflectors<T> to_;
  std::vector<T> own_;
};

// Whether the real chases on whole blocks of `width` rows are used: their blocks end in zeros at the matrix's
// end.
template <class T> constexpr bool in_blocks(std::int64_t width) {
  return !complex_type<T> && width % chase_block_rows == 0;
}
std::int64_t whole_rows(std::int64_t rows) {
  return (rows + chase_block_rows - 1) / chase_block_rows * chase_block_rows;
}

// chase_band for real types. A step's block B below the diagonal is passed over twice:
//   w = tau B v for the step's reflector; the first column of B - w v^T gives the next reflector;
//   the other columns take both.
template <class T> void chase_blocks(const BandSweeps& sweeps, T* band, SideReflectors<T> reflectors) {
  const std::int64_t n = sweeps.n, b = sweeps.width, ld = 2 * b - 1;
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + 2 * b * j + (i - j); };
  Writer<T> kept(reflectors, 0);
  std::vector<T> scratch(3 * b);
  T *v = scratch.data(), *next = v + b, *const work = next + b;
  for (std::int64_t s = 0; s < sweeps.count(); ++s) {
    T tau = padded_reflector(b, sweeps.length(s, 0), at(s + 1, s), v);
    for (std::int64_t step = 0; step < sweeps.steps(s); ++step) {
      const std::int64_t row = s + 1 + step * b, length = sweeps.length(s, step);
      kept.keep(length, v, tau);
      if (tau != T(0)) chase_reflect_both(whole_rows(length), at(row, row), ld, tau, v, work);
      if (row + length == n) break;
      T* const below = at(row + length, row);
      chase_multiply(b, b, tau, below, ld, v, work);
      chase_subtract(b, 1, below, ld, work, v);
      tau = padded_reflector(b, sweeps.length(s, step + 1), below, next);
      chase_reflect(b, b - 1, below + ld, ld, work, v + 1, tau, next);
      std::swap(v, next);
    }
  }
}

// chase_upper_band for real types: the rows that a reflector from the right changes are a block T above and
// a block B, which the reflector from the left changes too.
template <class T>
void chase_upper_blocks(const BandSweeps& sweeps, T* band, SideReflectors<T> left, SideReflectors<T> right) {
  const std::int64_t n = sweeps.n, b = sweeps.width, height = 3 * b - 1, ld = height - 1;
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + height * j + (2 * b - 1) + (i - j); };
  Writer<T> of_left(left, 0), of_right(right, 0);
  std::vector<T> scratch(4 * b);
  T *const turned = scratch.data(), *const v = turned + b, *const u = v + b, *const work = u + b;
  for (std::int64_t s = 0; s < sweeps.count(); ++s)
    for (std::int64_t step = 0; step < sweeps.steps(s); ++step) {
      const std::int64_t first = s + 1 + step * b, length = sweeps.length(s, step),
                         row = step == 0 ? s : first - b, rows = whole_rows(length);
      for (std::int64_t j = 0; j < length; ++j) turned[j] = *at(row, first + j);
      T tau = padded_reflector(b, length, turned, v);
      of_right.keep(length, v, tau);
      if (step > 0) {  // the row itself is among the block's
        chase_multiply(b, length, tau, at(row, first), ld, v, work);
        chase_subtract(b, length, at(row, first), ld, work, v);
      }
      for (std::int64_t j = 0; j < length; ++j) *at(row, first + j) = turned[j];
      T* const block = at(first, first);
      chase_multiply(rows, length, tau, block, ld, v, work);
      chase_subtract(rows, 1, block, ld, work, v);
      tau = padded_reflector(b, length, block, u);
      of_left.keep(length, u, tau);
      chase_reflect(rows, length - 1, block + ld, ld, work, v + 1, tau, u);
      const std::int64_t after = std::min(n, first + 2 * b) - first - length;
      if (after > 0) chase_reflect<T>(rows, after, at(first, first + length), ld, nullptr, nullptr, tau, u);
    }
}

}  // namespace

std::int64_t BandSweeps::taus_before(std::int64_t sweep) const {
  // The steps of the sweeps from n - 2 upwards are 1 (width times), 2 (width times), ...
  const auto of_last = [&](std::int64_t sweeps) {
    const std::int64_t whole = sweeps / width, rest = sweeps % width;
    return width * whole * (whole + 1) / 2 + rest * (whole + 1);
  };
  return of_last(count()) - of_last(count() - sweep);
}

namespace {
// chase_band for every type.
template <class T> void chase_columns(const BandSweeps& sweeps, T* band, T* values, T* taus) {
  const std::int64_t n = sweeps.n, b = sweeps.width;
  const int ld = static_cast<int>(2 * b - 1);  // of a block of the band
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + 2 * b * j + (i - j); };
  std::vector<T> scratch(3 * b);
  T *own = scratch.data(), *const work = own + 2 * b;
  for (std::int64_t s = 0; s < sweeps.count(); ++s) {
    T* column = at(s + 1, s);
    for (std::int64_t step = 0; step < sweeps.steps(s); ++step) {
      const std::int64_t row = s + 1 + step * b, length = sweeps.length(s, step);
      T* v = values != nullptr ? values : own + step % 2 * b;
      const T tau = reflector(length, column, v);
      const int rows = static_cast<int>(length);
      if (step > 0 && tau != T(0)) {  // the other columns of the block that the previous step filled
        const int others = static_cast<int>(b) - 1;
        T* const block = at(row, row - b + 1);
        if (others > 0) {
          apply_dense(true, rows, others, block, ld, v, work);
          add_outer(rows, others, -conjugate(tau), v, work, block, ld);
        }
      }
      reflect_both_sides(rows, v, tau, at(row, row), ld, work);
      const std::int64_t after = std::min(b, n - row - length);
      column = at(row + length, row);
      if (after > 0 && tau != T(0)) {
        apply_dense(false, static_cast<int>(after), rows, column, ld, v, work);
        add_outer(static_cast<int>(after), rows, -tau, work, v, column, ld);
      }
      if (values != nullptr) values += length, *taus++ = tau;
    }
  }
}
}  // namespace

template <class T> void chase_band(const BandSweeps& sweeps, T* band, real_of<T>* diagonal,
                                   real_of<T>* beside, T* values, T* taus) {
  const std::int64_t n = sweeps.n, b = sweeps.width;
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + 2 * b * j + (i - j); };
  bool done = false;
  if constexpr (!complex_type<T>)
    if (in_blocks<T>(b)) chase_blocks<T>(sweeps, band, {values, taus}), done = true;
  if (!done) chase_columns(sweeps, band, values, taus);
  for (std::int64_t j = 0; j < n; ++j) {
    diagonal[j] = *reinterpret_cast<const real_of<T>*>(at(j, j));
    if (j + 1 < n) beside[j] = *reinterpret_cast<const real_of<T>*>(at(j + 1, j));
  }
}

namespace {
// chase_upper_band for every type.
template <class T>
void chase_upper_columns(const BandSweeps& sweeps, T* band, SideReflectors<T> left, SideReflectors<T> right) {
  const std::int64_t n = sweeps.n, b = sweeps.width, height = 3 * b - 1;
  const int ld = static_cast<int>(height - 1);  // of a block of the band
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + height * j + (2 * b - 1) + (i - j); };
  Writer<T> of_left(left, b), of_right(right, b);
  std::vector<T> scratch(3 * b);
  T *const turned = scratch.data(), *const work = turned + b;
  for (std::int64_t s = 0; s < sweeps.count(); ++s)
    for (std::int64_t step = 0; step < sweeps.steps(s); ++step) {
      const std::int64_t first = s + 1 + step * b, length = sweeps.length(s, step),
                         row = step == 0 ? s : first - b;
      const int size = static_cast<int>(length);
      for (std::int64_t j = 0; j < length; ++j) turned[j] = conjugate(*at(row, first + j));
      T* v = of_right.place();
      T tau = reflector(length, turned, v);
      for (std::int64_t j = 0; j < length; ++j) *at(row, first + j) = turned[j];
      if (tau != T(0)) {
        const int rows = static_cast<int>(first + length - row - 1);
        apply_dense(false, rows, size, at(row + 1, first), ld, v, work);
        add_outer(rows, size, -tau, work, v, at(row + 1, first), ld);
      }
      of_right.keep(length, tau);
      v = of_left.place();
      tau = reflector(length, at(first, first), v);
      const int columns = static_cast<int>(std::min(n, first + 2 * b) - first - 1);
      if (columns > 0 && tau != T(0)) {
        apply_dense(true, size, columns, at(first, first + 1), ld, v, work);
        add_outer(size, columns, -conjugate(tau), v, work, at(first, first + 1), ld);
      }
      of_left.keep(length, tau);
    }
}
}  // namespace

template <class T> T chase_upper_band(const BandSweeps& sweeps, T* band, real_of<T>* diagonal,
                                      real_of<T>* beside, SideReflectors<T> left, SideReflectors<T> right) {
  const std::int64_t n = sweeps.n, b = sweeps.width, height = 3 * b - 1;
  const auto at = [&](std::int64_t i, std::int64_t j) { return band + height * j + (2 * b - 1) + (i - j); };
  bool done = false;
  if constexpr (!complex_type<T>)
    if (in_blocks<T>(b)) chase_upper_blocks(sweeps, band, left, right), done = true;
  if (!done) chase_upper_columns(sweeps, band, left, right);
  for (std::int64_t j = 0; j < n; ++j) {
    diagonal[j] = *reinterpret_cast<const real_of<T>*>(at(j, j));
    if (j + 1 < n) beside[j] = *reinterpret_cast<const real_of<T>*>(at(j, j + 1));
  }
  if constexpr (complex_type<T>)
    if (n > 0) {
      const T corner = *at(0, 0);
      diagonal[0] = std::abs(corner);
      if (diagonal[0] > 0) return corner / diagonal[0];
    }
  return T(1);
}

SweepBlock sweep_block(const BandSweeps& sweeps, std::int64_t first_sweep, std::int64_t count,
                       std::int64_t step) {
  const std::int64_t row = first_sweep + 1 + step * sweeps.width,
                     columns = std::min({count, sweeps.n - row, sweeps.count() - first_sweep});
  return {row, std::min(columns - 1 + sweeps.width, sweeps.n - row), columns};
}

template <class T> void fill_sweep_block(const BandSweeps& sweeps, std::int64_t first_sweep,
                                         std::int64_t step, const SweepBlock& block, const T* values,
                                         const T* taus, T* v, T* t) {
  std::vector<T> tau(block.columns);
  std::fill_n(v, block.rows * block.columns, T(0));
  for (std::int64_t j = 0; j < block.columns; ++j) {
    const std::int64_t sweep = first_sweep + j;
    const T* from = values + sweeps.values_before(sweep) - sweeps.values_before(first_sweep);
    std::copy_n(from + step * sweeps.width, sweeps.length(sweep, step), v + j * block.rows + j);
    tau[j] = taus[sweeps.taus_before(sweep) - sweeps.taus_before(first_sweep) + step];
  }
  std::fill_n(t, block.columns * block.columns, T(0));
  lapack::larft(static_cast<int>(block.rows), static_cast<int>(block.columns), v,
                static_cast<int>(block.rows), tau.data(), t, static_cast<int>(block.columns));
}

#define TESSERA_INSTANTIATE(T)                                                                        \
  template void chase_band<T>(const BandSweeps&, T*, real_of<T>*, real_of<T>*, T*, T*);               \
  template T chase_upper_band<T>(const BandSweeps&, T*, real_of<T>*, real_of<T>*, SideReflectors<T>,  \
                                 SideReflectors<T>);                                                  \
  template void fill_sweep_block<T>(const BandSweeps&, std::int64_t, std::int64_t, const SweepBlock&, \
                                    const T*, const T*, T*, T*);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(c32) TESSERA_INSTANTIATE(c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::kernels
