// Divide and conquer on a tridiagonal matrix by one rank, with the products of joined_rows.hpp: fewer copies
// and quicker products than in LAPACK.
#include <cmath>
#include <vector>

#include "kernels/spectral/joined_rows.hpp"
#include "kernels/spectral/rank_one_merge.hpp"

namespace tessera::kernels {

extern "C" {
#define TESSERA_DECLARE(p, R)                                                                                \
  void p##stedc_(const char* job, const int* n, R* d, R* e, R* z, const int* ldz, R* work, const int* lwork, \
                 int* iwork, const int* liwork, int* info);                                                  \
  void p##sterf_(const int* n, R* d, R* e, int* info);
TESSERA_REAL_TYPES(TESSERA_DECLARE)
#undef TESSERA_DECLARE
}

namespace {

constexpr std::int64_t leaf = 64;  // the largest matrix that LAPACK solves

template <class R> bool by_lapack(std::int64_t n, R* d, R* e, R* vectors) {
  const int size = lapack_int(n, "a matrix extent");
  R work_size = 0;
  int info = 0, int_size = 0, query = -1;
  const auto call = [&](R* work, const int* work_count, int* integers, const int* int_count) {
    variant<R>(sstedc_, dstedc_)("I", &size, d, e, vectors, &size, work, work_count, integers, int_count,
                                 &info);
  };
  call(&work_size, &query, &int_size, &query);
  const int count = std::max(queried_size(work_size, "a workspace"), 1), integers = std::max(int_size, 1);
  std::vector<R> work(count);
  std::vector<int> int_work(integers);
  call(work.data(), &count, int_work.data(), &integers);
  return info == 0;
}

// vectors: n x n, column-major.
template <class R> bool conquer(std::int64_t n, R* d, R* e, R* vectors) {
  if (n <= leaf) return by_lapack(n, d, e, vectors);
  const std::int64_t top = n / 2, bottom = n - top;
  const R coupling = e[top - 1], corner = std::abs(coupling);
  d[top - 1] -= corner, d[top] -= corner;
  Pooled<R> upper(top * top), lower(bottom * bottom);
  if (!conquer(top, d, e, upper.data()) || !conquer(bottom, d + top, e + top, lower.data())) return false;
  std::vector<R> weights(n);
  for (std::int64_t j = 0; j < top; ++j) weights[j] = upper[j * top + top - 1];
  for (std::int64_t j = 0; j < bottom; ++j) weights[top + j] = lower[j * bottom];
  RankOneMerge<R> merge(std::vector<R>(d, d + n), std::move(weights), top, coupling);
  std::vector<typename RankOneMerge<R>::Root> roots(merge.roots());
  for (std::int64_t i = 0; i < merge.roots(); ++i)
    if (!merge.find_root(i, roots[i])) return false;
  merge.take(std::move(roots));
  const auto join = [&](bool in_top, R* half, R* to) {
    const std::int64_t rows = in_top ? top : bottom;
    HalfColumns<R> columns(n, rows, in_top ? 0 : top, rows, half);
    columns.rotate(merge.rotations());
    joined_rows(
        columns, rows, in_top, merge,
        [&](const auto& places, auto... which) { merge.vectors(places, which...); }, to, n);
  };
  join(true, upper.data(), vectors), join(false, lower.data(), vectors + top);
  for (std::int64_t i = 0; i < n; ++i) d[i] = merge.order()[i].value;
  return true;
}

}  // namespace

template <class R> bool tridiagonal_eigh(std::int64_t n, R* d, R* e, R* vectors) {
  return n == 0 || conquer(n, d, e, vectors);
}
template <class R> bool tridiagonal_eigenvalues(std::int64_t n, R* d, R* e) {
  if (n == 0) return true;
  const int size = lapack_int(n, "a matrix extent");
  int info = 0;
  variant<R>(ssterf_, dsterf_)(&size, d, e, &info);
  return info == 0;
}

template bool tridiagonal_eigh<float>(std::int64_t, float*, float*, float*);
template bool tridiagonal_eigh<double>(std::int64_t, double*, double*, double*);
template bool tridiagonal_eigenvalues<float>(std::int64_t, float*, float*);
template bool tridiagonal_eigenvalues<double>(std::int64_t, double*, double*);

}  // namespace tessera::kernels
