// LAPACK and BLAS on column-major memory, by element type. LAPACK is called through its Fortran interface,
// because the C one checks for NaN with 32-bit products. Extents are checked to fit 32 bits.
#pragma once
#include <cblas.h>

#include <tessera/error.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/blas_types.hpp"

namespace tessera::kernels {

// Elements to allocate behind a matrix of this leading dimension, or behind a workspace. OpenBLAS up to
// 0.3.23 reads one element beyond the last of a strided complex vector (zgemv, cgemv); for a matrix' last row
// that is one more column.
template <class T> std::int64_t looked_at_beyond(std::int64_t ld) { return complex_type<T> ? ld + 8 : 0; }

inline int lapack_int(std::int64_t n, const char* what) {
  if (n > std::numeric_limits<int>::max())
    throw LinAlgError(std::string(what) + " of " + std::to_string(n) +
                      " does not fit LAPACK's 32-bit integers; split the matrix over more ranks");
  return static_cast<int>(n);
}

#define TESSERA_REAL_TYPES(X) X(s, float) X(d, double)
#define TESSERA_COMPLEX_TYPES(X) X(c, c32, float) X(z, c64, double)
#define TESSERA_LAPACK_TYPES(X) X(s, float) X(d, double) X(c, c32) X(z, c64)
extern "C" {
#define TESSERA_DECLARE(p, T)                                                                              \
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
#define TESSERA_DECLARE(p, R)                                                                           \
  void p##orgqr_(const int* m, const int* n, const int* k, R* a, const int* lda, const R* tau, R* work, \
                 const int* lwork, int* info);                                                          \
  void p##syevd_(const char* job, const char* uplo, const int* n, R* a, const int* lda, R* w, R* work,  \
                 const int* lwork, int* iwork, const int* liwork, int* info);                           \
  void p##gesdd_(const char* job, const int* m, const int* n, R* a, const int* lda, R* s, R* u,         \
                 const int* ldu, R* vt, const int* ldvt, R* work, const int* lwork, int* iwork, int* info);
TESSERA_REAL_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
#define TESSERA_DECLARE(p, T, R)                                                                           \
  void p##ungqr_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,    \
                 const int* lwork, int* info);                                                             \
  void p##heevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, R* w, T* work,     \
                 const int* lwork, R* rwork, const int* lrwork, int* iwork, const int* liwork, int* info); \
  void p##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, R* s, T* u,            \
                 const int* ldu, T* vt, const int* ldvt, T* work, const int* lwork, R* rwork, int* iwork,  \
                 int* info);
TESSERA_COMPLEX_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}

namespace lapack {

template <class T> int getrf(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  variant<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_)(&m, &n, a, &lda, pivots, &info);
  return info;
}
template <class T>
void getrs(char trans, int n, int k, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  variant<T>(sgetrs_, dgetrs_, cgetrs_, zgetrs_)(&trans, &n, &k, a, &lda, pivots, b, &ldb, &info);
}
template <class T> int potrf(char uplo, int n, T* a, int lda) {
  int info = 0;
  variant<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_)(&uplo, &n, a, &lda, &info);
  return info;
}
template <class T> void geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {
  int info = 0;
  variant<T>(sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_)(&m, &n, a, &lda, tau, work, &lwork, &info);
}
template <class T> void larft(int n, int k, const T* v, int ldv, const T* tau, T* t, int ldt) {
  variant<T>(slarft_, dlarft_, clarft_, zlarft_)("F", "C", &n, &k, v, &ldv, tau, t, &ldt);
}
template <class T> void larfb(char trans, int m, int n, int k, const T* v, int ldv, const T* t, int ldt, T* c,
                              int ldc, T* work, int ldwork) {
  variant<T>(slarfb_, dlarfb_, clarfb_, zlarfb_)("L", &trans, "F", "C", &m, &n, &k, v, &ldv, t, &ldt, c, &ldc,
                                                 work, &ldwork);
}
template <class T> void orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) {
  int info = 0;
  variant<T>(sorgqr_, dorgqr_, cungqr_, zungqr_)(&m, &n, &k, a, &lda, tau, work, &lwork, &info);
}

inline CBLAS_TRANSPOSE flag(char trans) {
  return trans == 'N' ? CblasNoTrans : trans == 'T' ? CblasTrans : CblasConjTrans;
}
template <class T> void trsm_of_side(CBLAS_SIDE side, bool lower, char trans, bool unit, int m, int n,
                                     const T* a, int lda, T* b, int ldb) {
  if (m == 0 || n == 0) return;
  const T one(1);
  variant<T>(cblas_strsm, cblas_dtrsm, cblas_ctrsm, cblas_ztrsm)(
      CblasColMajor, side, lower ? CblasLower : CblasUpper, flag(trans), unit ? CblasUnit : CblasNonUnit, m,
      n, scalar(one), a, lda, b, ldb);
}
// op(A) X = B in place of B, column-major, from the left. trans: 'N', 'T' or 'C'.
template <class T>
void trsm(bool lower, char trans, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  trsm_of_side(CblasLeft, lower, trans, unit, m, n, a, lda, b, ldb);
}
// X op(A) = B in place of B, from the right.
template <class T>
void trsm_right(bool lower, char trans, bool unit, int m, int n, const T* a, int lda, T* b, int ldb) {
  trsm_of_side(CblasRight, lower, trans, unit, m, n, a, lda, b, ldb);
}

// C += alpha op(A) op(B), column-major (beta 1), or C = alpha op(A) op(B) (beta 0).
template <class T> void gemm(char trans_a, char trans_b, int m, int n, int k, T alpha, const T* a, int lda,
                             const T* b, int ldb, T beta, T* c, int ldc) {
  if (m == 0 || n == 0) return;
  variant<T>(cblas_sgemm, cblas_dgemm, cblas_cgemm, cblas_zgemm)(CblasColMajor, flag(trans_a), flag(trans_b),
                                                                 m, n, k, scalar(alpha), a, lda, b, ldb,
                                                                 scalar(beta), c, ldc);
}

}  // namespace lapack

// LAPACK and ScaLAPACK print the arguments they refuse and continue. Here refusals are recorded, and this
// throws InternalError with those since the last call, because they are the library's fault.
void check_refusals();

// The size that a workspace query returned in work[0].
template <class T> int queried_size(const T& answer, const char* what) {
  const double size = real_part(answer);
  if (size < 16777216.0) return static_cast<int>(size);
  return lapack_int(static_cast<std::int64_t>(size * 1.0000002),
                    what);  // a float32 answer may be rounded down
}

}  // namespace tessera::kernels
