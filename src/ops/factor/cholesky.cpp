// Cholesky: reads the lower triangle of a Hermitian matrix, returns L with L L^H = a.
#include <algorithm>
#include <limits>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

BlockCyclic layout_of(const FactorParams& how, std::int64_t n, int ranks, kernels::SumOrder order) {
  const GridShape grid = grid_shape(how, ranks, order);
  return block_cyclic(grid, n, n, how.block > 0 ? how.block : block_size_of(n, grid.columns, order));
}
BlockCyclic layout_of(const MatrixGroupPlan& plan) {
  return layout_of(plan.params.as<FactorParams>(), extent(plan.in[0], 1), plan.ranks, plan.order);
}
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const BlockCyclic layout = layout_of(plan);
  ReceivedBytes traffic;
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[0], layout, me, Part::lower) * plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[0], layout, me, Part::lower) * plan.itemsize);
  predict_cholesky(traffic, {layout, me, plan.itemsize});
  return traffic;
}
std::int64_t memory(const MatrixGroupPlan& plan) {
  const BlockCyclic layout = layout_of(plan);
  return part_elements(layout, plan.itemsize) + panel_elements(layout);
}
const MatrixDims dims("B.. n n -> B.. n n | whole n", {predicted, memory});

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[0].shape, in[0].dtype}}; }

bool gives_nan(const KernelArgs& args) { return args.params.as<FactorParams>().nan_for_failure; }

// Factors one matrix after the other, so that a breakdown affects only its own matrix.
template <class T> void factor_apart(const Tile& a, T* l) {
  const std::int64_t n = extent(a, 1);
  for (std::int64_t i = 0; i < batch_count(a); ++i) {
    T* result = l + i * n * n;
    if (!kernels::cholesky(a.dtype, 1, n, MatrixGroup::matrix<T>(a, i), result).happened()) continue;
    for (std::int64_t row = 0; row < n; ++row) {
      std::fill_n(result + row * n, row + 1, T(std::numeric_limits<real_of<T>>::quiet_NaN()));
      std::fill_n(result + row * n + row + 1, n - row - 1, T(0));
    }
  }
}

void kernel(const KernelArgs& args) {
  const Tile& a = args.in[0];
  const auto breakdown = kernels::cholesky(a.dtype, batch_count(a), extent(a, 1), a.data, args.out[0].data);
  if (!breakdown.happened()) return;
  if (!gives_nan(args)) throw_not_positive_definite(a, breakdown.matrix, breakdown.index);
  kernels::visit_inexact(
      a.dtype, [&](auto zero) { factor_apart(a, reinterpret_cast<decltype(zero)*>(args.out[0].data)); });
}

template <class T, class Args> void factor_together(const Args& args) {
  const KernelArgs& local = local_of(args);
  const auto& how = local.params.template as<FactorParams>();
  const MatrixGroup team(args, dims);
  const Grid grid(team.device_ids, grid_shape(how, team.ranks(), team.order), team.order);
  const Tile &a = local.in[0], &l = local.out[0];
  const std::int64_t n = a.global.back();
  const Tiles in = team.tiles_of(args, false, 0), out = team.tiles_of(args, true, 0);
  const BlockCyclic layout = layout_of(how, n, team.ranks(), team.order);
  const auto is_finite = [&](const T* matrix) {
    return magnitude_of(grid, in, matrix, Part::lower).is_finite();
  };
  std::int64_t bad_matrix = -1, bad_pivot = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    GridMatrix<T> matrix(grid, layout, 0, true);
    load(grid, in, MatrixGroup::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld, Part::lower);
    const std::int64_t bad = cholesky(grid, matrix);
    if (bad >= 0 && (gives_nan(local) || !is_finite(MatrixGroup::matrix<T>(a, i)))) {
      fill_nan(grid, out, MatrixGroup::matrix<T>(l, i), Part::lower);
      continue;
    }
    if (bad >= 0 && bad_matrix < 0) bad_matrix = i, bad_pivot = bad;
    store(grid, out, MatrixGroup::matrix<T>(l, i), layout, matrix.values.data(), matrix.ld, Part::lower);
  }
  if (bad_matrix >= 0) throw_not_positive_definite(a, bad_matrix, bad_pivot);
}

// The algorithm of several ranks; in a ReproducibleScope one rank runs it too.
template <class Args> void together(const Args& args) {
  kernels::visit_inexact(local_of(args).in[0].dtype,
                         [&](auto zero) { factor_together<decltype(zero)>(args); });
}

// With phi(X) = the lower triangle with halved diagonal: S = L^-H phi(L^H gL) L^-1 (Murray 2016). Only the
// lower triangle was read, so its cotangent is that of a symmetric change of both triangles: tril(S + S^H),
// the diagonal once.
Cotangents vjp(const VjpArgs& v) {
  const bool is_complex_matrix = is_complex(v.out[0].dtype());
  const Array& l = v.out[0];
  const Array g = is_complex_matrix ? conj(v.cotangents[0]) : v.cotangents[0];
  const Array half = diagonal_mask(l, l.dtype()) * 0.5;
  const Array product = lower_part(matmul(adjoint(l), g));
  const Array phi = product - product * half;
  const Triangle back{.lower = true, .transpose = true, .conjugate = is_complex_matrix};
  const Array left = triangular_solve(l, phi, back);                  // L^-H phi
  const Array s = adjoint(triangular_solve(l, adjoint(left), back));  // (L^-H (L^-H phi)^H)^H
  const Array both = s + adjoint(s);
  const Array a_bar = lower_part(both - both * half);
  return {is_complex_matrix ? conj(a_bar) : a_bar};
}

double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  return static_cast<double>(in[0].shape.elements()) * static_cast<double>(extent(in[0], 1)) / 3;
}

std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack(
      [&] { return kernels::cholesky_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 1)); });
}

extern const OpDef ordered_cholesky_op;
const OpDef cholesky_op = with_ordered<ordered_cholesky_op>(factorization<dims>(
    {.name = "cholesky", .infer = infer, .vjp = vjp, .flops = flops}, kernel, together<CommunicationArgs>));
const OpDef ordered_cholesky_op = ordered_record(cholesky_op, together<KernelArgs>);
const RegisteredPair<dims> registered(cholesky_op, ordered_cholesky_op, workspace);

}  // namespace

Array cholesky(const Array& a, SolveHow how) {
  return record(cholesky_op, make_params(FactorParams{how.block, how.grid_rows, how.nan_for_failure}), {a});
}

// ---- building blocks of vjp rules ----

Array transposed(const Array& a) { return swapaxes(a, -1, -2); }
Array adjoint(const Array& a) {
  return is_complex(a.dtype()) ? conj(swapaxes(a, -1, -2)) : swapaxes(a, -1, -2);
}
Array lower_part(const Array& a, int k) { return tril(a, k); }
Array upper_part(const Array& a, int k) { return triu(a, k); }
Array diagonal_mask(const Array& like, Dtype dtype) {
  return eye(like.shape()[like.shape().size() - 2], like.shape()[like.shape().size() - 1], 0, dtype);
}

}  // namespace tessera::factor
