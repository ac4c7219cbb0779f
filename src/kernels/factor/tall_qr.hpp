// QR of tall and narrow matrices by chunks of rows that stay in the cache (TSQR: Demmel, Grigori, Hoemmen and
// Langou 2012): LAPACK's columns would pass through memory once for each reflector.
//
//   rows of   [A0]   [Q0      ] [R0]         [R0]   [Z0]
//   a chunk   [A1] = [   Q1   ] [R1]    then [R1] = [Z1] R    and    Q = [Q0 Z0; Q1 Z1; Q2 Z2]
//             [A2]   [      Q2] [R2]         [R2]   [Z2]
#pragma once
#include <cstdint>
#include <vector>

namespace tessera::kernels {

// Whether chunks are quicker for an (m, n) matrix with items of so many bytes.
bool goes_by_chunks(std::int64_t m, std::int64_t n, std::size_t itemsize);
// Elements of memory that chunked_qr needs beside the matrix.
std::int64_t chunked_qr_workspace(std::int64_t m, std::int64_t n, std::size_t itemsize);

// Column-major a (m, n), columns ld apart, becomes Q if `vectors`, scratch if not; r (n, n) is the triangle,
// zeros below it. The signs of r's rows are arbitrary: with_householder_signs gives LAPACK's. On all threads,
// with bits that do not depend on their number. T is float, double or complex of them.
template <class T> void chunked_qr(std::int64_t m, std::int64_t n, T* a, std::int64_t ld, T* r, bool vectors);

// The signs that Householder's method gives the columns of q, from its top block (n, n), column-major
// (Ballard et al. 2014: q - signs has an LU factorization without pivoting).
template <class T> std::vector<T> householder_signs(std::vector<T> top, std::int64_t n);
// Multiplies columns of q and rows of r by them.
template <class T> void with_householder_signs(std::int64_t m, std::int64_t n, T* q, std::int64_t ld, T* r);

}  // namespace tessera::kernels
