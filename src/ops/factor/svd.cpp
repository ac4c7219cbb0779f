// Singular values and vectors.
#include <algorithm>
#include <cmath>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/factor/tall.hpp"
#include "ops/factor/two_stage/alone.hpp"
#include "ops/factor/two_stage/bidiagonal.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

struct SvdParams {
  bool full;
  template <class V> void fields(V&& visit) const { visit("full_matrices", full); }
};

// For a tall matrix: the svd of r is sent to every rank.
template <bool vectors> std::optional<TallTraffic> tall_traffic(const Type& a, const Params& p, int ranks) {
  const std::int64_t m = extent(a, 2), n = extent(a, 1);
  if (!is_tall(m, n, ranks) || (vectors && p.as<SvdParams>().full && m != n)) return std::nullopt;
  return TallTraffic{vectors, 1 + n + (vectors ? 2 * n * n : 0)};
}

// The distribution of the work: one rank, or all ranks in two stages, on the matrix or, if that is taller, on
// its adjoint.
struct Work {
  Work(std::int64_t m, std::int64_t n, int ranks)
      : m(m), n(n), k(std::min(m, n)), grid{1, ranks}, is_adjoint(m < n) {
    is_alone = is_quicker_alone(k);
  }
  // The matrix and the vectors of its longer side, and the vectors of the shorter side.
  BlockCyclic long_side() const { return bidiagonal_layout(std::max(m, n), k, grid.columns); }
  BlockCyclic short_side() const { return bidiagonal_layout(k, k, grid.columns); }
  Tiles matrix(const Tiles& in) const {
    if (!is_adjoint) return in;
    Tiles adjoint = in.transposed();
    adjoint.conjugate = !in.conjugate;
    return adjoint;
  }
  // The tiles of the vectors as columns.
  Tiles long_tiles(const Tiles& u, const Tiles& vh) const { return is_adjoint ? vh.transposed() : u; }
  Tiles short_tiles(const Tiles& u, const Tiles& vh) const { return is_adjoint ? u : vh.transposed(); }
  std::int64_t m, n, k;
  GridShape grid;
  bool is_adjoint, is_alone = false;
};
Work work_of(const MatrixGroupPlan& plan) {
  return {extent(plan.in[0], 2), extent(plan.in[0], 1), plan.ranks};
}

// The traffic without the completion to a full basis.
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const Work w = work_of(plan);
  const bool vectors = plan.out.size() == 3;
  const auto real_itemsize = static_cast<std::int64_t>(itemsize(plan.out[vectors ? 1 : 0].dtype));
  ReceivedBytes traffic;
  const auto stored = [&](const Tiles& tiles, const BlockCyclic& layout) {
    traffic.redistributed.add(stored_from_others(tiles, layout, me) * plan.itemsize);
  };
  if (w.is_alone) {
    traffic.redistributed.add(loaded_from_others(plan.in_tiles[0], one_block(w.grid, w.m, w.n), me) *
                              plan.itemsize);
    if (vectors)
      stored(plan.out_tiles[0], one_block(w.grid, w.m, w.k)),
          stored(plan.out_tiles[2], one_block(w.grid, w.k, w.n));
    if (w.k > 0) predict_values(traffic, me, w.k * real_itemsize);
    return traffic;
  }
  if (w.k == 0) return traffic;
  traffic.redistributed.add(loaded_from_others(w.matrix(plan.in_tiles[0]), w.long_side(), me) *
                            plan.itemsize);
  if (vectors)
    stored(w.long_tiles(plan.out_tiles[0], plan.out_tiles[2]), w.long_side()),
        stored(w.short_tiles(plan.out_tiles[0], plan.out_tiles[2]), w.short_side());
  predict_bidiagonal(traffic, {w.long_side(), me, plan.itemsize}, real_itemsize, vectors);
  return traffic;
}
// The memory that a rank needs: the matrix, the vectors, and a workspace as large as the matrix. The
// two-stage algorithm also needs the rows of both sides' vectors, and on the first rank the reflectors of the
// band.
std::int64_t memory(const MatrixGroupPlan& plan) {
  const Work w = work_of(plan);
  const bool vectors = plan.out.size() == 3;
  const auto elements = [&](const BlockCyclic& layout) { return part_elements(layout, plan.itemsize); };
  if (w.is_alone)
    return 2 * elements(one_block(w.grid, w.m, w.n)) +
           (vectors ? elements(one_block(w.grid, w.m, w.k)) + elements(one_block(w.grid, w.k, w.n)) : 0);
  return 2 * elements(w.long_side()) + elements_of_chase(w.short_side(), vectors) +
         (vectors ? elements(w.long_side()) + 4 * elements(w.short_side()) : 0);
}
const MatrixDims dims("B.. m n -> B.. m u, B.. k, B.. v n | whole m n u k v", {predicted, memory}, 0,
                      tall_traffic<true>),
    value_dims("B.. m n -> B.. k | whole m n k", {predicted, memory}, 0, tall_traffic<false>);

template <bool vectors> std::vector<Type> infer(std::span<const Type> in, const Params& p) {
  const auto m = extent(in[0], 2), n = extent(in[0], 1), k = std::min(m, n);
  const Type s{with_matrix_dims(in[0].shape, {k}), real_dtype(in[0].dtype)};
  if (!vectors) return {s};
  const bool full = p.as<SvdParams>().full;
  return {{with_matrix_dims(in[0].shape, {m, full ? m : k}), in[0].dtype},
          s,
          {with_matrix_dims(in[0].shape, {full ? n : k, n}), in[0].dtype}};
}

template <bool vectors> void kernel(const KernelArgs& args) {
  const Tile& a = args.in[0];
  void *u = vectors ? args.out[0].data : nullptr, *vh = vectors ? args.out[2].data : nullptr;
  const auto breakdown = kernels::svd(a.dtype, batch_count(a), extent(a, 2), extent(a, 1),
                                      vectors && args.params.as<SvdParams>().full, a.data, u,
                                      args.out[vectors ? 1 : 0].data, vh);
  if (breakdown.happened()) throw_not_converged(a, breakdown.matrix);
}

// The tiles of a range of a matrix' columns, and the start of this rank's part of them.
template <class T> Tiles some_columns(const Grid& grid, Tiles tiles, Range columns, T*& tile) {
  for (std::size_t r = 0; r < tiles.held.size(); ++r) {
    Range& held = tiles.held[r].columns;
    const std::int64_t start = std::clamp(held.start, columns.start, columns.stop),
                       stop = std::clamp(held.stop, columns.start, columns.stop);
    if (static_cast<int>(r) == grid.rank && stop > start) tile += (start - held.start) * tiles.column_step;
    held = {start - columns.start, std::max(stop, start) - columns.start};
  }
  return tiles;
}

// Completes the tiles' first k columns, which are orthonormal, to a basis.
template <class T>
void complete_basis(const Grid& column_grid, const Tiles& tiles, T* tile, std::int64_t m, std::int64_t k) {
  if (k == m) return;
  const std::int64_t block = block_for(m, column_grid.shape.columns, 64);
  const auto layout = [&](std::int64_t columns) {
    return BlockCyclic{{m, block, 1}, {columns, block, column_grid.shape.columns}};
  };
  GridMatrix<T> known(column_grid, layout(k)), q(column_grid, layout(m));
  T* first = tile;
  const Tiles first_tiles = some_columns(column_grid, tiles, {0, k}, first);
  load(column_grid, first_tiles, static_cast<const T*>(first), known.layout, known.values.data(), known.ld);
  qr(column_grid, known, q, [] {});
  if constexpr (complex_type<T>)
    if (tiles.conjugate)
      for (T& value : q.values) value = std::conj(value);
  // Columns k..m of q are moved from its layout to the tiles' columns k..m.
  Tiles all = tiles;
  for (auto& box : all.held)
    box.columns = {std::clamp(box.columns.start, k, std::max(k, box.columns.stop)),
                   std::max(k, box.columns.stop)};
  T* rest = tile;
  const auto& mine = tiles.held[column_grid.rank];
  rest += (all.held[column_grid.rank].columns.start - mine.columns.start) * tiles.column_step;
  store(column_grid, all, rest, q.layout, q.values.data(), q.ld);
}

// Completes u to m columns and vh to n rows.
template <class T>
void complete_both(const CommunicationArgs& args, const MatrixGroup& team, std::int64_t i) {
  const auto& global = args.local.in[0].global;
  const std::int64_t m = global[global.size() - 2], n = global.back(), k = std::min(m, n);
  const Grid column_grid(team.device_ids, {1, static_cast<int>(team.device_ids.size())});
  Tiles v_tiles = team.tiles_of(args, true, 2).transposed();
  v_tiles.conjugate = true;
  complete_basis(column_grid, team.tiles_of(args, true, 0), MatrixGroup::matrix<T>(args.local.out[0], i), m,
                 k);
  complete_basis(column_grid, v_tiles, MatrixGroup::matrix<T>(args.local.out[2], i), n, k);
}

// The source of one matrix and the destinations of its factors.
template <class T> struct SvdPlaces {
  bool vectors;
  const Tiles& in;
  const T* a;
  real_of<T>* s;
  Tiles u_tiles, vh_tiles;  // the first k columns and rows
  T *u = nullptr, *vh = nullptr;
};
template <class T> bool svd_alone(const Grid& grid, const Work& work, const SvdPlaces<T>& to) {
  const bool vectors = to.vectors;
  OnFirst<T> matrix(grid, work.m, work.n), u(grid, work.m, vectors ? work.k : 0),
      vh(grid, vectors ? work.k : 0, work.n);
  matrix.load(to.in, to.a);
  bool converged = true;
  if (grid.rank == 0)
    converged = !kernels::svd(dtype_of<T>(), 1, work.m, work.n, false, matrix.data(),
                              vectors ? u.data() : nullptr, to.s, vectors ? vh.data() : nullptr)
                     .happened();
  if (vectors) u.store(to.u_tiles, to.u), vh.store(to.vh_tiles, to.vh);
  return broadcast_values(grid, converged, to.s, work.k);
}

template <class T> void conjugate(GridMatrix<T>& matrix) {
  if constexpr (complex_type<T>)
    for (std::int64_t c = 0; c < matrix.columns; ++c)
      for (std::int64_t r = 0; r < matrix.rows; ++r) *matrix.at(r, c) = std::conj(*matrix.at(r, c));
}
// largest: of the matrix' elements, which are scaled to about one.
template <class T>
bool svd_on_grid(const Grid& grid, const Work& work, const SvdPlaces<T>& to, double largest) {
  const BlockCyclic long_side = work.long_side(), short_side = work.short_side(),
                    nothing{{0, 1, 1}, {0, 1, grid.shape.columns}};
  GridMatrix<T> matrix(grid, long_side, 0, true);
  load(grid, work.matrix(to.in), to.a, matrix.layout, matrix.values.data(), matrix.ld);
  const int exponent = largest == 0 ? 0 : -std::ilogb(largest);
  scale(grid, matrix, exponent, Part::all);
  GridMatrix<T> of_long(grid, to.vectors ? long_side : nothing, 0, true),
      of_short(grid, to.vectors ? short_side : nothing, 0, true);
  const bool converged = svd_in_two_stages(grid, matrix, to.s, to.vectors ? &of_long : nullptr,
                                           to.vectors ? &of_short : nullptr);
  kernels::scale(to.s, work.k, -exponent);
  if (to.vectors) {
    conjugate(work.is_adjoint ? of_long : of_short);  // vh is stored as columns
    store(grid, work.long_tiles(to.u_tiles, to.vh_tiles), work.is_adjoint ? to.vh : to.u, long_side,
          of_long.values.data(), of_long.ld);
    store(grid, work.short_tiles(to.u_tiles, to.vh_tiles), work.is_adjoint ? to.u : to.vh, short_side,
          of_short.values.data(), of_short.ld);
  }
  return converged;
}

template <class T, bool vectors> void svd_tall(const CommunicationArgs& args, const MatrixGroup& team) {
  const Tile &a = args.local.in[0], &s = args.local.out[vectors ? 1 : 0];
  const Tiles in = team.tiles_of(args, false, 0), u_tiles = vectors ? team.tiles_of(args, true, 0) : Tiles(),
              vh_tiles = vectors ? team.tiles_of(args, true, 2) : Tiles();
  const TallRows rows(team.device_ids, in, a.global[a.global.size() - 2], a.global.back());
  std::int64_t failed_matrix = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    TallVectors<T> out{u_tiles, nullptr, vh_tiles, nullptr};
    if constexpr (vectors)
      out.u = MatrixGroup::matrix<T>(args.local.out[0], i),
      out.vh = MatrixGroup::matrix<T>(args.local.out[2], i);
    const bool converged = tall_svd(rows, static_cast<const T*>(MatrixGroup::matrix<T>(a, i)),
                                    vectors ? &out : nullptr, MatrixGroup::matrix<real_of<T>>(s, i, 1));
    if (!converged && failed_matrix < 0) failed_matrix = i;
  }
  if (failed_matrix >= 0) throw_not_converged(a, failed_matrix);
}

template <class T, bool vectors> void svd_together(const CommunicationArgs& args) {
  const MatrixGroup team(args, vectors ? dims : value_dims);
  const auto& global = args.local.in[0].global;
  if (tall_traffic<vectors>({global, args.local.in[0].dtype}, args.local.params,
                            static_cast<int>(team.device_ids.size())))
    return svd_tall<T, vectors>(args, team);
  const int ranks = static_cast<int>(team.device_ids.size());
  const Grid grid(team.device_ids, {1, ranks});
  const Tile &a = args.local.in[0], &s = args.local.out[vectors ? 1 : 0];
  const std::int64_t m = a.global[a.global.size() - 2], n = a.global.back(), k = std::min(m, n);
  const Tiles in = team.tiles_of(args, false, 0);
  const Work work(m, n, ranks);
  std::int64_t failed_matrix = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    real_of<T>* values = MatrixGroup::matrix<real_of<T>>(s, i, 1);
    const kernels::Magnitude magnitude = magnitude_of(grid, in, MatrixGroup::matrix<T>(a, i));
    if (!magnitude.is_finite()) {
      kernels::fill_nan(values, k);
      if constexpr (vectors)
        for (const std::size_t side : {0, 2})
          fill_nan(grid, team.tiles_of(args, true, side), MatrixGroup::matrix<T>(args.local.out[side], i));
      continue;
    }
    SvdPlaces<T> to{vectors, in, MatrixGroup::matrix<T>(a, i), values, {}, {}};
    if constexpr (vectors) {
      to.u = MatrixGroup::matrix<T>(args.local.out[0], i),
      to.vh = MatrixGroup::matrix<T>(args.local.out[2], i);
      to.u_tiles = some_columns(grid, team.tiles_of(args, true, 0), {0, k}, to.u);
      to.vh_tiles = some_columns(grid, team.tiles_of(args, true, 2).transposed(), {0, k}, to.vh).transposed();
    }
    if (k > 0 &&
        !(work.is_alone ? svd_alone(grid, work, to) : svd_on_grid(grid, work, to, magnitude.largest)) &&
        failed_matrix < 0)
      failed_matrix = i;
    if constexpr (vectors)
      if (args.local.params.as<SvdParams>().full && m != n) complete_both<T>(args, team, i);
  }
  if (failed_matrix >= 0) throw_not_converged(a, failed_matrix);
}

template <bool vectors> void communicate(const CommunicationArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype,
                         [&](auto zero) { svd_together<decltype(zero), vectors>(args); });
}

// The cotangent of the reduced form (Wan and Zhang 2019):
//   gA = U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gs)] V^H
//        + (I - U U^H) gU S^-1 V^H + U S^-1 gV^H (I - V V^H)
//   with E_ij = s_j^2 - s_i^2 off the diagonal and skew(X) = X - X^H.
Array cotangent_of(const Array& u, const Array& s, const Array& vh, Array gu, const Array& gs, Array gvh) {
  const Dtype dtype = u.dtype();
  const auto skew = [](const Array& x) { return x - adjoint(x); };
  const Array columns = astype(expand_dims(s, -2), dtype), rows = astype(expand_dims(s, -1), dtype);
  const auto k = static_cast<std::int64_t>(s.shape().back());
  const Array mask = eye(k, dtype);
  Array inner, beside;
  const auto add = [](Array& sum, const Array& term) { sum = sum.node() ? sum + term : term; };
  if (gs.node()) add(inner, mask * astype(expand_dims(gs, -2), dtype));
  if (gu.node() || gvh.node()) {
    const Array gaps = reciprocal(columns * columns - rows * rows + mask) - mask;
    if (gu.node()) {
      const Array uhgu = matmul(adjoint(u), gu);
      add(inner, skew(uhgu) * gaps * columns);
      if (is_complex(dtype)) add(inner, skew(uhgu) * mask / (columns * 2.0));
      if (u.shape()[u.shape().size() - 2] > k) add(beside, matmul((gu - matmul(u, uhgu)) / columns, vh));
    }
    if (gvh.node()) {
      const Array gv = adjoint(gvh), v = adjoint(vh), vhgv = matmul(vh, gv);
      add(inner, rows * (skew(vhgv) * gaps));
      if (vh.shape().back() > k) add(beside, matmul(u, adjoint((gv - matmul(v, vhgv)) / columns)));
    }
  }
  Array g = matmul(matmul(u, inner), vh);
  return beside.node() ? g + beside : g;
}

Cotangents vjp_vectors(const VjpArgs& v) {
  const Array &u = v.out[0], &s = v.out[1], &vh = v.out[2];
  const auto k = s.shape().back();
  if (v.node.params->as<SvdParams>().full &&
      (u.shape().back() != k || vh.shape()[vh.shape().size() - 2] != k))
    throw ArgumentError(call_text() +
                        ": full_matrices of a matrix that is not square have no gradient (the added vectors "
                        "are arbitrary). Pass {.full_matrices = false}");
  const auto conj_of = [](const Array& x) { return x.node() && is_complex(x.dtype()) ? conj(x) : x; };
  return {
      conj_of(cotangent_of(u, s, vh, conj_of(v.cotangents[0]), v.cotangents[1], conj_of(v.cotangents[2])))};
}
Cotangents vjp_values(const VjpArgs& v) {
  const auto [u, s, vh] = svd(v.in[0], false);
  const Array g = cotangent_of(u, s, vh, Array(), v.cotangents[0], Array());
  return {is_complex(g.dtype()) ? conj(g) : g};
}

template <bool vectors> double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  return (vectors ? 12.0 : 8.0 / 3) * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(std::min(extent(in[0], 1), extent(in[0], 2)));
}

template <bool vectors>
std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params& p) {
  return workspace_of_lapack([&] {
    return kernels::svd_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 2), extent(in[0], 1),
                                  vectors && p.as<SvdParams>().full, vectors);
  });
}

const OpDef svd_op =
    factorization<dims>({.name = "svd", .infer = infer<true>, .vjp = vjp_vectors, .flops = flops<true>},
                        kernel<true>, communicate<true>);
const OpDef svdvals_op = factorization<value_dims>(
    {.name = "svdvals", .infer = infer<false>, .vjp = vjp_values, .flops = flops<false>}, kernel<false>,
    communicate<false>);
const Registered registered(svd_op), registered_values(svdvals_op);
const TakesWorkspace takes(svd_op, workspace<true>), takes_for_values(svdvals_op, workspace<false>);

}  // namespace

SvdParts svd(const Array& a, bool full_matrices) {
  auto results = record_all(svd_op, make_params(SvdParams{full_matrices}), {a});
  return {results[0], results[1], results[2]};
}
Array svdvals(const Array& a) { return record(svdvals_op, no_params(), {a}); }

}  // namespace tessera::factor
