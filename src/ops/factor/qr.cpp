// QR: tall and narrow matrices by one QR per rank and one of the stacked triangles (TSQR), others by
// Householder panels.
#include <algorithm>
#include <numeric>

#include "comm/collectives/collectives.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

const MatrixDims dims("B.. m n -> B.. m k, B.. k n | whole m n k");

struct QrParams {
  bool complete;  // q (m, m) instead of (m, min(m, n))
  template <class V> void fields(V&& visit) const { visit("complete", complete); }
};

std::vector<Type> infer(std::span<const Type> in, const Params& p) {
  const auto m = extent(in[0], 2), n = extent(in[0], 1), k = p.as<QrParams>().complete ? m : std::min(m, n);
  return {{with_matrix_dims(in[0].shape, {m, k}), in[0].dtype},
          {with_matrix_dims(in[0].shape, {k, n}), in[0].dtype}};
}

void kernel(const KernelArgs& args) {
  const Tile& a = args.in[0];
  kernels::qr(a.dtype, batch_count(a), extent(a, 2), extent(a, 1), args.params.as<QrParams>().complete,
              a.data, args.out[0].data, args.out[1].data);
}

template <class T> void factor_panels(const Grid& grid, const Tiles& in, const T* a, const Tiles& q_tiles,
                                      T* q_tile, const Tiles& r_tiles, T* r_tile, std::int64_t m,
                                      std::int64_t n, std::int64_t k) {
  const std::int64_t block = block_for(std::min(m, n), grid.shape.columns, 64);
  const auto layout = [&](std::int64_t rows, std::int64_t columns) {
    return BlockCyclic{{rows, block, 1}, {columns, block, grid.shape.columns}};
  };
  GridMatrix<T> matrix(grid, layout(m, n), 0, true);
  load(grid, in, a, matrix.layout, matrix.values.data(), matrix.ld);
  const auto store_r = [&] {
    store(grid, r_tiles, r_tile, layout(k, n), matrix.values.data(), matrix.ld, Part::upper);
  };
  if (k <= n) {  // Q takes the place of the reflectors
    qr(grid, matrix, matrix, store_r);
    return store(grid, q_tiles, q_tile, layout(m, k), matrix.values.data(), matrix.ld);
  }
  GridMatrix<T> q(grid, layout(m, k), 0, true);
  qr(grid, matrix, q, store_r);
  store(grid, q_tiles, q_tile, q.layout, q.values.data(), q.ld);
}

// Signs that Householder's method would have given to the columns of q, from its top n x n block (Ballard et
// al. 2014: q - signs has an LU factorization without pivoting).
template <class T> std::vector<real_of<T>> householder_signs(std::vector<T> top, std::int64_t n) {
  std::vector<real_of<T>> signs(n);
  const auto at = [&](std::int64_t i, std::int64_t j) -> T& { return top[i + j * n]; };
  for (std::int64_t i = 0; i < n; ++i) {
    real_of<T> alpha;
    if constexpr (complex_type<T>)
      alpha = at(i, i).real();
    else
      alpha = at(i, i);
    const auto sign = signs[i] = std::signbit(alpha) ? real_of<T>(1) : real_of<T>(-1);
    at(i, i) -= T(sign);
    for (std::int64_t r = i + 1; r < n; ++r) at(r, i) /= at(i, i);
    for (std::int64_t j = i + 1; j < n; ++j)
      for (std::int64_t r = i + 1; r < n; ++r) at(r, j) -= at(r, i) * at(i, j);
  }
  return signs;
}

// Column-major QR with a real diagonal of r that is not negative.
template <class T> void local_qr(std::int64_t m, std::int64_t n, T* a, std::vector<T>& r) {
  const std::int64_t k = std::min(m, n);
  r.assign(k * n, T(0));
  if (k == 0) return;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), narrow = static_cast<int>(k);
  std::vector<T> tau(k), work(64 * std::max<std::int64_t>(n, 1));
  lapack::geqrf(rows, columns, a, rows, tau.data(), work.data(), static_cast<int>(work.size()));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i <= std::min(j, k - 1); ++i) r[i + j * k] = a[i + j * m];
  lapack::orgqr(rows, narrow, narrow, a, rows, tau.data(), work.data(), static_cast<int>(work.size()));
  for (std::int64_t i = 0; i < k; ++i) {
    real_of<T> d;
    if constexpr (complex_type<T>)
      d = r[i + i * k].real();
    else
      d = r[i + i * k];
    if (!std::signbit(d)) continue;
    for (std::int64_t j = i; j < n; ++j) r[i + j * k] = -r[i + j * k];
    for (std::int64_t row = 0; row < m; ++row) a[row + i * m] = -a[row + i * m];
  }
}

//   rank 0:  A0 = Q0 R0      [R0]
//   rank 1:  A1 = Q1 R1      [R1] = Z R  (everywhere)      Q = [Q0 Z0; Q1 Z1; ...]
template <class T> void factor_stacked(const Grid& grid, const Tiles& in, const T* a, const Tiles& q_tiles,
                                       T* q_tile, const Tiles& r_tiles, T* r_tile, std::int64_t m,
                                       std::int64_t n) {
  const int ranks = grid.all->size();
  const BlockCyclic layout{{m, block_size(m, ranks), ranks}, {n, std::max<std::int64_t>(n, 1), 1}};
  const Grid stacked_grid(grid.all->device_ids(), {ranks, 1});
  GridMatrix<T> matrix(stacked_grid, layout);
  load(stacked_grid, in, a, layout, matrix.values.data(), matrix.ld);
  std::vector<T> r_own, stacked, r;
  local_qr(matrix.rows, n, matrix.values.data(), r_own);
  std::vector<std::int64_t> bytes_of, offset_of, rows_of;
  std::int64_t total_rows = 0;
  for (int p = 0; p < ranks; ++p) {
    rows_of.push_back(std::min(layout.rows.count(p), n));
    bytes_of.push_back(rows_of.back() * n * static_cast<std::int64_t>(sizeof(T)));
    offset_of.push_back(total_rows * n * static_cast<std::int64_t>(sizeof(T)));
    total_rows += rows_of.back();
  }
  std::vector<T> triangles(total_rows * n);
  comm::all_gather_v(*grid.all, r_own.data(), bytes_of[grid.rank], triangles.data(), bytes_of, offset_of);
  stacked.resize(total_rows * n);
  std::int64_t first = 0, own_first = 0;
  for (int p = 0; p < ranks; ++p) {
    const std::int64_t rows = rows_of[p];
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        stacked[first + i + j * total_rows] = triangles[first * n + i + j * rows];
    if (p == grid.rank) own_first = first;
    first += rows;
  }
  local_qr(total_rows, n, stacked.data(), r);
  const std::int64_t own = rows_of[grid.rank];
  GridMatrix<T> q(stacked_grid, layout);
  lapack::gemm<T>('N', 'N', static_cast<int>(matrix.rows), static_cast<int>(n), static_cast<int>(own), T(1),
                  matrix.values.data(), static_cast<int>(matrix.ld), stacked.data() + own_first,
                  static_cast<int>(total_rows), T(0), q.values.data(), static_cast<int>(q.ld));
  std::vector<T> top(n * n);  // held by rank 0, or by the first ranks: every rank has at most block_size rows
  std::fill(top.begin(), top.end(), T(0));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < q.rows; ++i)
      if (const auto row = layout.rows.global(grid.rank, i); row < n) top[row + j * n] = *q.at(i, j);
  comm::all_reduce(*grid.all, ReduceKind::sum, dtype_of<T>(), top.data(), top.data(), n * n);
  const auto signs = householder_signs(std::move(top), n);
  for (std::int64_t j = 0; j < n; ++j) {
    const T sign(signs[j]);
    for (std::int64_t i = 0; i < q.rows; ++i) *q.at(i, j) *= sign;
    for (std::int64_t c = j; c < n; ++c) r[j + c * n] *= sign;
  }
  store(stacked_grid, q_tiles, q_tile, layout, q.values.data(), q.ld);
  const Rectangle& mine = r_tiles.held[grid.rank];
  for (std::int64_t i = mine.rows.start; i < mine.rows.stop; ++i)  // everybody has r
    for (std::int64_t j = mine.columns.start; j < mine.columns.stop; ++j)
      r_tile[(i - mine.rows.start) * r_tiles.row_step + (j - mine.columns.start)] = r[i + j * n];
}

template <class T> void factor_together(const TalkArgs& args) {
  const Team team(args, dims);
  const int ranks = static_cast<int>(team.device_ids.size());
  const Grid grid(team.device_ids, {1, ranks});
  const Tile &a = args.local.in[0], &q = args.local.out[0], &r = args.local.out[1];
  const std::int64_t m = a.global[a.global.size() - 2], n = a.global.back(), k = q.global.back();
  const Tiles in = team.tiles_of(args, false, 0), q_tiles = team.tiles_of(args, true, 0),
              r_tiles = team.tiles_of(args, true, 1);
  const bool tall = k == n && n > 0 && m >= 2 * n * ranks && n <= 512;
  for (std::int64_t i = 0; i < team.matrices; ++i)
    if (tall)
      factor_stacked(grid, in, Team::matrix<T>(a, i), q_tiles, Team::matrix<T>(q, i), r_tiles,
                     Team::matrix<T>(r, i), m, n);
    else
      factor_panels(grid, in, Team::matrix<T>(a, i), q_tiles, Team::matrix<T>(q, i), r_tiles,
                    Team::matrix<T>(r, i), m, n, k);
}

void talk(const TalkArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype, [&](auto zero) { factor_together<decltype(zero)>(args); });
}

// gA = (gQ + Q copyltu(M)) R^-H with M = R gR^H - gQ^H Q, copyltu(M) = tril(M, -1) + tril(M, -1)^H + Re
// diag(M)  (Liao et al. 2019).
// A wide A = [X, Y] has R = [U, V]: gY = Q gV, and gQ grows by Y gV^H before the rule is applied to X = Q U.
Cotangents vjp(const VjpArgs& v) {
  const Array &a = v.in[0], &q = v.out[0], &r_all = v.out[1];
  const auto m = extent(type_of(a), 2), n = extent(type_of(a), 1), k = std::min(m, n);
  if (q.shape().back() != k)
    throw ArgumentError(call_text() + ": the complete form has no gradient; differentiate the reduced form");
  const auto conj_of = [&](const Array& x) { return x.node() && is_complex(x.dtype()) ? conj(x) : x; };
  Array gq = conj_of(v.cotangents[0]), gr = conj_of(v.cotangents[1]), r = r_all, g_rest;
  if (n > k && gr.node()) {
    const Array gv = gr(ellipsis, slice(), slice(k, n));
    g_rest = matmul(q, gv);
    const Array more = matmul(a(ellipsis, slice(), slice(k, n)), adjoint(gv));
    gq = gq.node() ? gq + more : more;
    gr = gr(ellipsis, slice(), slice(0, k));
  }
  if (n > k) r = r_all(ellipsis, slice(), slice(0, k));
  Array middle;
  if (gr.node()) middle = matmul(r, adjoint(gr));
  if (gq.node()) middle = middle.node() ? middle - matmul(adjoint(gq), q) : -matmul(adjoint(gq), q);
  const Array below = lower_part(middle, -1), mask = diagonal_mask(middle, middle.dtype());
  const Array on_diagonal = is_complex(middle.dtype()) ? (middle + conj(middle)) * 0.5 * mask : middle * mask;
  Array inner = matmul(q, below + adjoint(below) + on_diagonal);
  if (gq.node()) inner = gq + inner;
  Array g = adjoint(triangular_solve(r, adjoint(inner), {}));  // X R^-H = (R^-1 X^H)^H
  if (n > k) g = concatenate({g, g_rest.node() ? g_rest : zeros_like(a(ellipsis, slice(), slice(k, n)))}, -1);
  return {conj_of(g)};
}

double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  return 4 * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(std::min(extent(in[0], 1), extent(in[0], 2)));
}

const OpDef qr_op =
    factorization<dims>({.name = "qr", .infer = infer, .vjp = vjp, .flops = flops}, kernel, talk);
const Registered registered(qr_op);

}  // namespace

std::pair<Array, Array> qr(const Array& a, bool complete) {
  auto results = record_all(qr_op, make_params(QrParams{complete}), {a});
  return {results[0], results[1]};
}

}  // namespace tessera::factor
