#include "kernels/spectral/nonsymmetric.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/factor/lapack_calls.hpp"
#include "kernels/factor/magnitude.hpp"
#include "kernels/factor/row_major.hpp"

namespace tessera::kernels {

extern "C" {
#define TESSERA_DECLARE(p, R)                                                                            \
  void p##gees_(const char* vectors, const char* sort, void* select, const int* n, R* a, const int* lda, \
                int* sorted, R* wr, R* wi, R* z, const int* ldz, R* work, const int* lwork, int* bwork,  \
                int* info);                                                                              \
  void p##geev_(const char* left, const char* right, const int* n, R* a, const int* lda, R* wr, R* wi,   \
                R* vl, const int* ldvl, R* vr, const int* ldvr, R* work, const int* lwork, int* info);   \
  void p##geqp3_(const int* m, const int* n, R* a, const int* lda, int* columns, R* tau, R* work,        \
                 const int* lwork, int* info);
TESSERA_REAL_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
#define TESSERA_DECLARE(p, T, R)                                                                          \
  void p##geev_(const char* left, const char* right, const int* n, T* a, const int* lda, T* w, T* vl,     \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, R* rwork, int* info); \
  void p##gees_(const char* vectors, const char* sort, void* select, const int* n, T* a, const int* lda,  \
                int* sorted, T* w, T* z, const int* ldz, T* work, const int* lwork, R* rwork, int* bwork, \
                int* info);                                                                               \
  void p##geqp3_(const int* m, const int* n, T* a, const int* lda, int* columns, T* tau, T* work,         \
                 const int* lwork, R* rwork, int* info);
TESSERA_COMPLEX_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}

namespace {

template <class R> void geev(const char* right, int n, std::complex<R>* a, std::complex<R>* w,
                             std::complex<R>* v, std::complex<R>* work, int lwork, R* rwork, int* info) {
  variant<R>(cgeev_, zgeev_)("N", right, &n, a, &n, w, v, &n, v, &n, work, &lwork, rwork, info);
}

// Eigenvalues of a real matrix: wi is 0, or they come in conjugate pairs, wi > 0 first; v has the real parts
// of a pair's vectors in one column and the imaginary parts in the next.
template <class R>
void real_geev(const char* right, int n, R* a, R* wr, R* wi, R* v, R* work, int lwork, int* info) {
  variant<R>(sgeev_, dgeev_)("N", right, &n, a, &n, wr, wi, v, &n, v, &n, work, &lwork, info);
}

template <class T> struct SchurSpace {
  explicit SchurSpace(int n) : values(std::max(2 * n, 1)), real(std::max(n, 1)) {}
  std::vector<T> values;         // eigenvalues, which are not returned
  std::vector<real_of<T>> real;  // for complex matrices
};
template <class T> void gees(int n, T* a, T* z, T* work, int lwork, SchurSpace<T>& space, int* info) {
  int sorted = 0, unused = 0;
  T* const values = space.values.data();
  if constexpr (complex_type<T>)
    variant<T>(cgees_, zgees_)("V", "N", nullptr, &n, a, &n, &sorted, values, z, &n, work, &lwork,
                               space.real.data(), &unused, info);
  else
    variant<T>(sgees_, dgees_)("V", "N", nullptr, &n, a, &n, &sorted, values, values + n, z, &n, work, &lwork,
                               &unused, info);
}

template <class T>
void geqp3(int m, int n, T* a, int* columns, T* tau, T* work, int lwork, [[maybe_unused]] real_of<T>* rwork) {
  int info = 0;
  if constexpr (complex_type<T>)
    variant<T>(cgeqp3_, zgeqp3_)(&m, &n, a, &m, columns, tau, work, &lwork, rwork, &info);
  else
    variant<T>(sgeqp3_, dgeqp3_)(&m, &n, a, &m, columns, tau, work, &lwork, &info);
}

template <class T> bool is_finite(const T* a, std::int64_t count) {
  Magnitude magnitude;
  magnitude.add(a, count);
  return magnitude.is_finite();
}

// The workspace size that LAPACK requests, in elements.
template <class T> int eig_work(int n, bool vectors) {
  T answer{}, none{};
  real_of<T> real = 0;
  int info = 0;
  geev(vectors ? "V" : "N", n, &none, &none, &none, &answer, -1, &real, &info);
  return std::max(queried_size(answer, "a workspace"), 1);
}
template <class T> int schur_work(int n) {
  T answer{}, none{};
  SchurSpace<T> space(n);
  int info = 0;
  gees(n, &none, &none, &answer, -1, space, &info);
  return std::max(queried_size(answer, "a workspace"), 1);
}
template <class T> int pivots_work(int m, int n) {
  T answer{}, none{};
  real_of<T> real = 0;
  int column = 0;
  geqp3(m, n, &none, &column, &none, &answer, -1, &real);
  return std::max(queried_size(answer, "a workspace"), 1);
}

// Row-major eigenvectors from geev's columns.
template <class R>
void unpack_vectors(std::int64_t n, const R* imaginary, const R* columns, std::complex<R>* v) {
  for (std::int64_t j = 0; j < n; ++j) {
    const bool is_pair = imaginary[j] != 0;
    const R *real = columns + j * n, *other = real + n;
    for (std::int64_t i = 0; i < n; ++i) {
      v[i * n + j] = {real[i], is_pair ? other[i] : R(0)};
      if (is_pair) v[i * n + j + 1] = std::conj(v[i * n + j]);
    }
    if (is_pair) ++j;
  }
}
// A matrix without imaginary parts: half the arithmetic, and complex eigenvalues in exact pairs.
template <class R> bool real_eig_of(int n, const std::complex<R>* a, std::complex<R>* w, std::complex<R>* v) {
  const std::int64_t size = std::int64_t{n} * n;
  const auto beyond = looked_at_beyond<R>(n);
  const char* right = v != nullptr ? "V" : "N";
  std::vector<R> matrix(size + beyond), columns(v != nullptr ? size + beyond : 1),
      values(2 * std::int64_t{n});
  R* const imaginary = values.data() + n;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) matrix[j * n + i] = a[i * n + j].real();
  R answer = 0;
  int info = 0;
  real_geev(right, n, matrix.data(), values.data(), imaginary, columns.data(), &answer, -1, &info);
  const int work_size = std::max(queried_size(answer, "a workspace"), 1);
  std::vector<R> work(work_size + beyond);
  real_geev(right, n, matrix.data(), values.data(), imaginary, columns.data(), work.data(), work_size, &info);
  for (std::int64_t i = 0; i < n; ++i) w[i] = {values[i], imaginary[i]};
  if (v != nullptr) unpack_vectors(n, imaginary, columns.data(), v);
  return info == 0;
}

template <class T> bool eig_of(int n, const T* a, T* w, T* v) {
  const std::int64_t size = std::int64_t{n} * n;
  if (!is_finite(a, size)) {
    fill_nan(w, n);
    if (v != nullptr) fill_nan(v, size);
    return true;
  }
  if (std::all_of(a, a + size, [](const T& x) { return x.imag() == 0; })) return real_eig_of(n, a, w, v);
  const auto beyond = looked_at_beyond<T>(n);
  std::vector<T> matrix(size + beyond), vectors(v != nullptr ? size + beyond : 1);
  std::vector<real_of<T>> real(2 * std::int64_t{n});
  transpose(a, n, n, matrix.data());
  const char* right = v != nullptr ? "V" : "N";
  int info = 0;
  const int work_size = eig_work<T>(n, v != nullptr);
  std::vector<T> work(work_size + beyond);
  geev(right, n, matrix.data(), w, vectors.data(), work.data(), work_size, real.data(), &info);
  if (v != nullptr) transpose(vectors.data(), n, n, v);
  return info == 0;
}

template <class T> bool schur_of(int n, const T* a, T* t, T* z) {
  const std::int64_t size = std::int64_t{n} * n;
  if (!is_finite(a, size)) {
    fill_nan(t, size);
    fill_nan(z, size);
    return true;
  }
  const auto beyond = looked_at_beyond<T>(n);
  std::vector<T> matrix(size + beyond), vectors(size + beyond);
  SchurSpace<T> space(n);
  transpose(a, n, n, matrix.data());
  int info = 0;
  const int work_size = schur_work<T>(n);
  std::vector<T> work(work_size + beyond);
  gees(n, matrix.data(), vectors.data(), work.data(), work_size, space, &info);
  transpose(matrix.data(), n, n, t);
  transpose(vectors.data(), n, n, z);
  return info == 0;
}

template <class T> void columns_of(int m, int n, const T* a, std::int32_t* columns) {
  std::iota(columns, columns + n, 0);
  const std::int64_t size = std::int64_t{m} * n;
  if (m == 0 || !is_finite(a, size)) return;
  const auto beyond = looked_at_beyond<T>(std::max(m, n));
  std::vector<T> matrix(size + beyond), tau(std::min(m, n));
  std::vector<real_of<T>> real(2 * std::int64_t{n});
  std::vector<int> from_one(n, 0);
  transpose(a, m, n, matrix.data());
  const int work_size = pivots_work<T>(m, n);
  std::vector<T> work(work_size + beyond);
  geqp3(m, n, matrix.data(), from_one.data(), tau.data(), work.data(), work_size, real.data());
  std::transform(from_one.begin(), from_one.end(), columns, [](int column) { return column - 1; });
}

}  // namespace

Breakdown eig(Dtype dtype, std::int64_t batch, std::int64_t n, const void* a, void* w, void* v) {
  Breakdown breakdown;
  if (n == 0) return breakdown;
  const int extent = lapack_int(n, "a matrix extent");
  const auto run = [&]<class T>(T) {
    const auto* matrices = static_cast<const T*>(a);
    for (std::int64_t i = 0; i < batch; ++i)
      if (!eig_of(extent, matrices + i * n * n, static_cast<T*>(w) + i * n,
                  v != nullptr ? static_cast<T*>(v) + i * n * n : nullptr) &&
          !breakdown.happened())
        breakdown = {i, 0};
  };
  if (dtype == complex64)
    run(c32{});
  else
    run(c64{});
  return breakdown;
}

Breakdown schur(Dtype dtype, std::int64_t batch, std::int64_t n, const void* a, void* t, void* z) {
  Breakdown breakdown;
  if (n == 0) return breakdown;
  const int extent = lapack_int(n, "a matrix extent");
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < batch; ++i)
      if (!schur_of(extent, static_cast<const T*>(a) + i * n * n, static_cast<T*>(t) + i * n * n,
                    static_cast<T*>(z) + i * n * n) &&
          !breakdown.happened())
        breakdown = {i, 0};
  });
  return breakdown;
}

void pivoted_columns(Dtype dtype, std::int64_t batch, std::int64_t m, std::int64_t n, const void* a,
                     std::int32_t* columns) {
  if (n == 0) return;
  const int rows = lapack_int(m, "a matrix extent"), extent = lapack_int(n, "a matrix extent");
  visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < batch; ++i)
      columns_of(rows, extent, static_cast<const T*>(a) + i * m * n, columns + i * n);
  });
}

std::int64_t eig_workspace(Dtype dtype, std::int64_t n, bool vectors) {
  if (n == 0) return 0;
  const std::int64_t elements = n * n * (vectors ? 2 : 1) + n +  // complex: twice the size of a real number
                                looked_at_beyond<c64>(n) * (vectors ? 3 : 2);
  const int extent = lapack_int(n, "a matrix extent");
  return dtype == complex64 ? (elements + eig_work<c32>(extent, vectors)) * 8
                            : (elements + eig_work<c64>(extent, vectors)) * 16;
}
std::int64_t schur_workspace(Dtype dtype, std::int64_t n) {
  if (n == 0) return 0;
  const int extent = lapack_int(n, "a matrix extent");
  return visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<std::int64_t>(
        (2 * n * n + 2 * n + 3 * looked_at_beyond<T>(n) + schur_work<T>(extent)) * sizeof(T) +
        n * sizeof(real_of<T>));
  });
}
std::int64_t pivots_workspace(Dtype dtype, std::int64_t m, std::int64_t n) {
  if (m == 0 || n == 0) return 0;
  const int rows = lapack_int(m, "a matrix extent"), extent = lapack_int(n, "a matrix extent");
  return visit_inexact(dtype, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<std::int64_t>(
        (m * n + std::min(m, n) + 2 * looked_at_beyond<T>(std::max(m, n)) + pivots_work<T>(rows, extent)) *
            sizeof(T) +
        2 * n * sizeof(real_of<T>) + n * sizeof(int));
  });
}

}  // namespace tessera::kernels
