#include "kernels/dense/symmetric_product.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/blas_types.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {
namespace {

constexpr std::int64_t smallest = 128, least_depth = 32;  // below, half of the work saves nothing

bool is_symmetric(const MatrixProduct& p) {
  return p.m == p.n && p.m >= smallest && p.k >= least_depth && !p.accumulate && is_inexact(p.dtype) &&
         p.a.data == p.b.data && p.a.ld == p.b.ld && p.a.transposed != p.b.transposed;
}

// The strided view of rows [i, m) of an operand.
MatrixView rows_from(const StoredMatrix& x, std::int64_t i, Dtype dtype) {
  const std::int64_t row = x.transposed ? 1 : x.ld, column = x.transposed ? x.ld : 1;
  return {static_cast<const std::byte*>(x.data) + i * row * static_cast<std::int64_t>(itemsize(dtype)), row,
          column};
}
MatrixView whole(const StoredMatrix& x) { return {x.data, x.transposed ? 1 : x.ld, x.transposed ? x.ld : 1}; }

// Each thread computes rows of as large a part of the triangle.
void lower_packed(const MatrixProduct& p, const std::function<void()>& meanwhile) {
  const auto team = static_cast<std::int64_t>(threads());
  const auto edge = [&](std::int64_t t) {
    const auto row = static_cast<double>(p.m) * std::sqrt(static_cast<double>(t) / static_cast<double>(team));
    return t == team ? p.m : std::min(p.m, static_cast<std::int64_t>(row) / 16 * 16);
  };
  const Beside beside{{}, team == 1 ? meanwhile : nullptr};  // it communicates: not from several threads
  share(team, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = edge(begin), rows = edge(end) - first;
    if (rows == 0) return;
    auto* const c =
        static_cast<std::byte*>(p.c) + first * p.ldc * static_cast<std::int64_t>(itemsize(p.dtype));
    packed_product(
        {p.dtype, rows, p.n, p.k, rows_from(p.a, first, p.dtype), whole(p.b), false, c, p.ldc, true, first},
        beside);
  });
  if (team > 1 && meanwhile) meanwhile();
}

bool fits_blas(const MatrixProduct& p) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return threads() == 1 && std::max({p.n, p.k, p.a.ld, p.ldc}) <= most;
}
void lower_by_blas(const MatrixProduct& p) {
  const auto trans = p.a.transposed ? CblasTrans : CblasNoTrans;
  const int n = static_cast<int>(p.n), k = static_cast<int>(p.k), lda = static_cast<int>(p.a.ld),
            ldc = static_cast<int>(p.ldc);
  visit_inexact(p.dtype, [&]<class T>(T) {
    const T one(1), zero(0);
    variant<T>(cblas_ssyrk, cblas_dsyrk, cblas_csyrk, cblas_zsyrk)(CblasRowMajor, CblasLower, trans, n, k,
                                                                   scalar(one), as<T>(p.a.data), lda,
                                                                   scalar(zero), as<T>(p.c), ldc);
  });
}

// Copies the elements below the diagonal to their mirrored positions.
void mirror(std::byte* c, std::int64_t n, std::int64_t ldc, std::size_t item) {
  constexpr std::int64_t block = 64;
  const std::int64_t rows_of_it[] = {ldc, 1}, turned[] = {1, ldc};
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return c + (i * ldc + j) * static_cast<std::int64_t>(item);
  };
  for (std::int64_t i0 = 0; i0 < n; i0 += block) {
    const std::int64_t rows = std::min(block, n - i0);
    if (i0 > 0) copy_strided(at(0, i0), rows_of_it, at(i0, 0), turned, Shape{i0, rows}, item);
    for (std::int64_t i = i0; i < i0 + rows; ++i)
      for (std::int64_t j = i0; j < i; ++j) std::memcpy(at(j, i), at(i, j), item);
  }
}

}  // namespace

bool symmetric_product(const MatrixProduct& p, const Beside& beside) {
  if (!is_symmetric(p)) return false;
  const bool is_packed = has_packed_product(p.dtype) && worth_packing(p.dtype, p.m, p.n, p.k);
  if (!is_packed && !fits_blas(p)) return false;
  if (is_packed)
    lower_packed(p, beside.meanwhile);
  else
    lower_by_blas(p);
  mirror(static_cast<std::byte*>(p.c), p.n, p.ldc, itemsize(p.dtype));
  if (!is_packed && beside.meanwhile) beside.meanwhile();
  if (beside.last_pass) beside.last_pass(0, p.m, 0, p.n);
  return true;
}

}  // namespace tessera::kernels
