// QR: tall and narrow matrices by one QR per rank and a reduction of triangles (tall.hpp), others by
// Householder panels.
#include <algorithm>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/factor/tall.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

struct QrParams {
  bool complete;  // q (m, m) instead of (m, min(m, n))
  template <class V> void fields(V&& visit) const { visit("complete", complete); }
};

// For a tall matrix: r and the signs of its rows are sent to every rank.
std::optional<TallTraffic> tall_traffic(const Type& a, const Params& p, int ranks) {
  const std::int64_t m = extent(a, 2), n = extent(a, 1);
  if (!is_tall(m, n, ranks) || (p.as<QrParams>().complete && m != n)) return std::nullopt;
  return TallTraffic{true, triangle_elements(n) + n};
}
// On a grid of one row.
BlockCyclic layout_of(std::int64_t m, std::int64_t n, std::int64_t steps, int ranks,
                      kernels::SumOrder order) {
  constexpr std::int64_t widest = 64;
  return block_cyclic({1, ranks}, m, n,
                      order == kernels::SumOrder::fixed ? widest : block_for(steps, ranks, widest));
}
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const std::int64_t m = extent(plan.in[0], 2), n = extent(plan.in[0], 1), k = extent(plan.out[0], 1);
  const auto layout = [&](std::int64_t rows, std::int64_t columns) {
    return layout_of(rows, columns, std::min(m, n), plan.ranks, plan.order);
  };
  ReceivedBytes traffic;
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[0], layout(m, n), me) * plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[1], layout(k, n), me, Part::upper) *
                            plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[0], layout(m, k), me) * plan.itemsize);
  predict_qr(traffic, {layout(m, n), me, plan.itemsize});
  return traffic;
}
std::int64_t memory(const MatrixGroupPlan& plan) {
  const std::int64_t m = extent(plan.in[0], 2), n = extent(plan.in[0], 1), k = extent(plan.out[0], 1);
  const auto layout = layout_of(m, n, std::min(m, n), plan.ranks, plan.order);
  const auto q = layout_of(m, k, std::min(m, n), plan.ranks, plan.order);
  return part_elements(layout, plan.itemsize) + panel_elements(layout) +
         (k > n ? part_elements(q, plan.itemsize) : 0);
}
const MatrixDims dims("B.. m n -> B.. m k, B.. k n | whole m n k", {predicted, memory}, 0, tall_traffic);

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
  const auto layout = [&](std::int64_t rows, std::int64_t columns) {
    return layout_of(rows, columns, std::min(m, n), grid.shape.columns, grid.order);
  };
  GridMatrix<T> matrix(grid, layout(m, n), 0, true);
  load(grid, in, a, matrix.layout, matrix.values.data(), matrix.ld);
  const auto store_r = [&] {
    store(grid, r_tiles, r_tile, layout(k, n), matrix.values.data(), matrix.ld, Part::upper);
  };
  if (k <= n) {  // Q overwrites the reflectors
    qr(grid, matrix, matrix, store_r);
    return store(grid, q_tiles, q_tile, layout(m, k), matrix.values.data(), matrix.ld);
  }
  GridMatrix<T> q(grid, layout(m, k), 0, true);
  qr(grid, matrix, q, store_r);
  store(grid, q_tiles, q_tile, q.layout, q.values.data(), q.ld);
}

template <class T, class Args> void factor_together(const Args& args) {
  const KernelArgs& local = local_of(args);
  const MatrixGroup team(args, dims);
  const int ranks = team.ranks();
  const Tile &a = local.in[0], &q = local.out[0], &r = local.out[1];
  const std::int64_t m = a.global[a.global.size() - 2], n = a.global.back(), k = q.global.back();
  const Tiles in = team.tiles_of(args, false, 0), q_tiles = team.tiles_of(args, true, 0),
              r_tiles = team.tiles_of(args, true, 1);
  if (team.order == kernels::SumOrder::any && k == n && is_tall(m, n, ranks)) {
    const TallRows rows(team.device_ids, in, m, n);
    for (std::int64_t i = 0; i < team.matrices; ++i)
      tall_qr(rows, static_cast<const T*>(MatrixGroup::matrix<T>(a, i)), q_tiles,
              MatrixGroup::matrix<T>(q, i), r_tiles, MatrixGroup::matrix<T>(r, i));
    return;
  }
  const Grid grid(team.device_ids, {1, ranks}, team.order);
  for (std::int64_t i = 0; i < team.matrices; ++i)
    if (magnitude_of(grid, in, MatrixGroup::matrix<T>(a, i)).is_finite()) {
      factor_panels(grid, in, MatrixGroup::matrix<T>(a, i), q_tiles, MatrixGroup::matrix<T>(q, i), r_tiles,
                    MatrixGroup::matrix<T>(r, i), m, n, k);
    } else {
      fill_nan(grid, q_tiles, MatrixGroup::matrix<T>(q, i));
      fill_nan(grid, r_tiles, MatrixGroup::matrix<T>(r, i), Part::upper);
    }
}

// The algorithm of several ranks; in a ReproducibleScope one rank runs it too.
template <class Args> void together(const Args& args) {
  kernels::visit_inexact(local_of(args).in[0].dtype,
                         [&](auto zero) { factor_together<decltype(zero)>(args); });
}

// gA = (gQ + Q copyltu(M)) R^-H with M = R gR^H - gQ^H Q and
//   copyltu(M) = tril(M, -1) + tril(M, -1)^H + Re diag(M)  (Liao et al. 2019).
// A wide A = [X, Y] has R = [U, V]: gY = Q gV, and Y gV^H is added to gQ before the rule is applied to X = Q
// U.
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

std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params& p) {
  return workspace_of_lapack([&] {
    return kernels::qr_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 2), extent(in[0], 1),
                                 p.as<QrParams>().complete);
  });
}

extern const OpDef ordered_qr_op;
const OpDef qr_op = with_ordered<ordered_qr_op>(factorization<dims>(
    {.name = "qr", .infer = infer, .vjp = vjp, .flops = flops}, kernel, together<CommunicationArgs>));
const OpDef ordered_qr_op = ordered_record(qr_op, together<KernelArgs>);
const RegisteredPair<dims> registered(qr_op, ordered_qr_op, workspace);

}  // namespace

std::pair<Array, Array> qr(const Array& a, bool complete) {
  auto results = record_all(qr_op, make_params(QrParams{complete}), {a});
  return {results[0], results[1]};
}

}  // namespace tessera::factor
