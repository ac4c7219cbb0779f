// LAPACK and BLAS on column-major memory, by element type. LAPACK is called through its Fortran interface,
// because the C one checks for NaN with 32-bit products. Extents are checked to fit 32 bits.
#pragma once
#include <cblas.h>

#include <tessera/dtype.hpp>
#include <tessera/error.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace tessera::kernels {

using c32 = std::complex<float>;
using c64 = std::complex<double>;
template <class T> struct RealOf { using type = T; };
template <class R> struct RealOf<std::complex<R>> { using type = R; };
template <class T> using real_of = typename RealOf<T>::type;
template <class T> inline constexpr bool complex_type = !std::is_same_v<T, real_of<T>>;

// Elements to allocate behind a matrix of this leading dimension, or behind a workspace. OpenBLAS up to
// 0.3.23 reads one element beyond the last of a strided complex vector (zgemv, cgemv); for a matrix' last row
// that is one more column.
template <class T> std::int64_t looked_at_beyond(std::int64_t ld) { return complex_type<T> ? ld + 8 : 0; }

// Calls f(T{}) for the four types that LAPACK supports.
template <class F> decltype(auto) visit_inexact(Dtype dtype, F&& f) {
  if (dtype == float32) return f(float{});
  if (dtype == float64) return f(double{});
  if (dtype == complex64) return f(c32{});
  return f(c64{});
}

inline int lapack_int(std::int64_t n, const char* what) {
  if (n > std::numeric_limits<int>::max())
    throw LinAlgError(std::string(what) + " of " + std::to_string(n) +
                      " does not fit LAPACK's 32-bit integers; split the matrix over more ranks");
  return static_cast<int>(n);
}

#define TESSERA_LAPACK_TYPES(X) X(s, float, float) X(d, double, double) X(c, c32, float) X(z, c64, double)
extern "C" {
#define TESSERA_DECLARE(p, T, R)                                                                           \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                \
  void p##getrs_(const char* trans, const int* n, const int* k, const T* a, const int* lda,                \
                 const int* pivots, T* b, const int* ldb, int* info);                                      \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info);                         \
  void p##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork,      \
                 int* info);                                                                               \
  void p##larft_(const char* direct, const char* store, const int* n, const int* k, const T* v,            \
                 const int* ldv, const T* tau, T* t, const int* ldt);                                      \
  void p##larfb_(const char* side, const char* trans, const char* direct, const char* store, const int* m, \
                 const int* n, const int* k, const T* v, const int* ldv, const T* t, const int* ldt, T* c, \
                 const int* ldc, T* work, const int* ldwork);
TESSERA_LAPACK_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
#define TESSERA_DECLARE_Q(name, T)                                                                 \
  void name(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, \
            const int* lwork, int* info);
TESSERA_DECLARE_Q(sorgqr_, float)
TESSERA_DECLARE_Q(dorgqr_, double)
TESSERA_DECLARE_Q(cungqr_, c32)
TESSERA_DECLARE_Q(zungqr_, c64)
#undef TESSERA_DECLARE_Q
#define TESSERA_DECLARE_REAL(p, R)                                                                     \
  void p##syevd_(const char* job, const char* uplo, const int* n, R* a, const int* lda, R* w, R* work, \
                 const int* lwork, int* iwork, const int* liwork, int* info);                          \
  void p##gesdd_(const char* job, const int* m, const int* n, R* a, const int* lda, R* s, R* u,        \
                 const int* ldu, R* vt, const int* ldvt, R* work, const int* lwork, int* iwork, int* info);
TESSERA_DECLARE_REAL(s, float)
TESSERA_DECLARE_REAL(d, double)
#undef TESSERA_DECLARE_REAL
#define TESSERA_DECLARE_COMPLEX(p, T, R)                                                                   \
  void p##heevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, R* w, T* work,     \
                 const int* lwork, R* rwork, const int* lrwork, int* iwork, const int* liwork, int* info); \
  void p##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, R* s, T* u,            \
                 const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, R* rwork, int* iwork,  \
                 int* info);
TESSERA_DECLARE_COMPLEX(c, c32, float) TESSERA_DECLARE_COMPLEX(z, c64, double)
#undef TESSERA_DECLARE_COMPLEX
}

namespace lapack {

#define TESSERA_FORWARD(p, T, R)                                                                       \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                                         \
    int info = 0;                                                                                      \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                         \
    return info;                                                                                       \
  }                                                                                                    \
  inline void getrs(char trans, int n, int k, const T* a, int lda, const int* pivots, T* b, int ldb) { \
    int info = 0;                                                                                      \
    p##getrs_(&trans, &n, &k, a, &lda, pivots, b, &ldb, &info);                                        \
  }                                                                                                    \
  inline int potrf(char uplo, int n, T* a, int lda) {                                                  \
    int info = 0;                                                                                      \
    p##potrf_(&uplo, &n, a, &lda, &info);                                                              \
    return info;                                                                                       \
  }                                                                                                    \
  inline void geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {                         \
    int info = 0;                                                                                      \
    p##geqrf_(&m, &n, a, &lda, tau, work, &lwork, &info);                                              \
  }                                                                                                    \
  inline void larft(int n, int k, const T* v, int ldv, const T* tau, T* t, int ldt) {                  \
    p##larft_("F", "C", &n, &k, v, &ldv, tau, t, &ldt);                                                \
  }                                                                                                    \
  inline void larfb(char trans, int m, int n, int k, const T* v, int ldv, const T* t, int ldt, T* c,   \
                    int ldc, T* work, int ldwork) {                                                    \
    p##larfb_("L", &trans, "F", "C", &m, &n, &k, v, &ldv, t, &ldt, c, &ldc, work, &ldwork);            \
  }
TESSERA_LAPACK_TYPES(TESSERA_FORWARD)
#undef TESSERA_FORWARD

#define TESSERA_FORWARD_Q(name, T)                                                          \
  inline void orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) { \
    int info = 0;                                                                           \
    name(&m, &n, &k, a, &lda, tau, work, &lwork, &info);                                    \
  }
TESSERA_FORWARD_Q(sorgqr_, float)
TESSERA_FORWARD_Q(dorgqr_, double)
TESSERA_FORWARD_Q(cungqr_, c32)
TESSERA_FORWARD_Q(zungqr_, c64)
#undef TESSERA_FORWARD_Q

// op(A) X = B in place of B, column-major, from the left. trans: 'N', 'T' or 'C'.
template <class T>
void trsm(bool lower, char trans, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  if (m == 0 || n == 0) return;
  const auto uplo = lower ? CblasLower : CblasUpper;
  const auto op = trans == 'N' ? CblasNoTrans : trans == 'T' ? CblasTrans : CblasConjTrans;
  const auto diag = unit ? CblasUnit : CblasNonUnit;
  const T one(1);
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasColMajor, CblasLeft, uplo, op, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dtrsm(CblasColMajor, CblasLeft, uplo, op, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, c32>)
    cblas_ctrsm(CblasColMajor, CblasLeft, uplo, op, diag, m, n, &one, a, lda, b, ldb);
  else
    cblas_ztrsm(CblasColMajor, CblasLeft, uplo, op, diag, m, n, &one, a, lda, b, ldb);
}

// X op(A) = B in place of B, from the right.
template <class T>
void trsm_right(bool lower, char trans, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  if (m == 0 || n == 0) return;
  const auto uplo = lower ? CblasLower : CblasUpper;
  const auto op = trans == 'N' ? CblasNoTrans : trans == 'T' ? CblasTrans : CblasConjTrans;
  const auto diag = unit ? CblasUnit : CblasNonUnit;
  const T one(1);
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasColMajor, CblasRight, uplo, op, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dtrsm(CblasColMajor, CblasRight, uplo, op, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, c32>)
    cblas_ctrsm(CblasColMajor, CblasRight, uplo, op, diag, m, n, &one, a, lda, b, ldb);
  else
    cblas_ztrsm(CblasColMajor, CblasRight, uplo, op, diag, m, n, &one, a, lda, b, ldb);
}

// C += alpha op(A) op(B), column-major (beta 1), or C = alpha op(A) op(B) (beta 0).
template <class T> void gemm(char trans_a, char trans_b, int m, int n, int k, T alpha, const T* a, int lda,
                             const T* b, int ldb, T beta, T* c, int ldc) {
  if (m == 0 || n == 0) return;
  const auto flag = [](char t) { return t == 'N' ? CblasNoTrans : t == 'T' ? CblasTrans : CblasConjTrans; };
  const auto ta = flag(trans_a), tb = flag(trans_b);
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(CblasColMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(CblasColMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else if constexpr (std::is_same_v<T, c32>)
    cblas_cgemm(CblasColMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  else
    cblas_zgemm(CblasColMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}

}  // namespace lapack

// LAPACK and ScaLAPACK print the arguments they refuse and continue. Here refusals are recorded, and this
// throws InternalError with those since the last call, because they are the library's fault.
void check_refusals();

// The size that a workspace query returned in work[0].
template <class T> int queried_size(const T& answer, const char* what) {
  double size = 0;
  if constexpr (complex_type<T>)
    size = static_cast<double>(answer.real());
  else
    size = static_cast<double>(answer);
  if (size < 16777216.0) return static_cast<int>(size);
  return lapack_int(static_cast<std::int64_t>(size * 1.0000002),
                    what);  // a float32 answer may be rounded down
}

}  // namespace tessera::kernels
