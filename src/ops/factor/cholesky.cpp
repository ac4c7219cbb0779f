// Cholesky: reads the lower triangle of a Hermitian matrix, gives L with L L^H = a.
#include <algorithm>
#include <limits>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

BlockCyclic layout_of(const FactorParams& how, std::int64_t n, int ranks) {
  const GridShape grid = grid_shape(how, ranks);
  return dealt(grid, n, n, how.block > 0 ? how.block : block_for(n, grid.columns, widest_block(n)));
}
BlockCyclic layout_of(const Joint& joint) {
  return layout_of(joint.params.as<FactorParams>(), extent(joint.in[0], 1), joint.ranks);
}
Received received(const Joint& joint, int me) {
  const BlockCyclic layout = layout_of(joint);
  Received heard;
  heard.dealt.add(loaded_from_others(joint.in_tiles[0], layout, me, Part::lower) * joint.itemsize);
  heard.dealt.add(stored_from_others(joint.out_tiles[0], layout, me, Part::lower) * joint.itemsize);
  hear_cholesky(heard, {layout, me, joint.itemsize});
  return heard;
}
std::int64_t memory(const Joint& joint) {
  const BlockCyclic layout = layout_of(joint);
  return part_elements(layout, joint.itemsize) + panel_elements(layout);
}
const MatrixDims dims("B.. n n -> B.. n n | whole n", {received, memory});

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[0].shape, in[0].dtype}}; }

bool gives_nan(const KernelArgs& args) { return args.params.as<FactorParams>().nan_for_failure; }

// One matrix after the other: a breakdown stays with the matrix that has it.
template <class T> void factor_apart(const Tile& a, T* l) {
  const std::int64_t n = extent(a, 1);
  for (std::int64_t i = 0; i < batch_count(a); ++i) {
    T* result = l + i * n * n;
    if (!kernels::cholesky(a.dtype, 1, n, Team::matrix<T>(a, i), result).happened()) continue;
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

template <class T> void factor_together(const TalkArgs& args) {
  const auto& how = args.local.params.as<FactorParams>();
  const Team team(args, dims);
  const Grid grid(team.device_ids, grid_shape(how, static_cast<int>(team.device_ids.size())));
  const Tile &a = args.local.in[0], &l = args.local.out[0];
  const std::int64_t n = a.global.back();
  const Tiles in = team.tiles_of(args, false, 0), out = team.tiles_of(args, true, 0);
  const BlockCyclic layout = layout_of(how, n, grid.all->size());
  std::int64_t bad_matrix = -1, bad_pivot = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    if (!magnitude_of(grid, in, Team::matrix<T>(a, i), Part::lower).is_finite()) {
      fill_nan(grid, out, Team::matrix<T>(l, i), Part::lower);
      continue;
    }
    GridMatrix<T> matrix(grid, layout, 0, true);
    load(grid, in, Team::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld, Part::lower);
    const std::int64_t bad = cholesky(grid, matrix);
    if (bad >= 0 && gives_nan(args.local)) {
      fill_nan(grid, out, Team::matrix<T>(l, i), Part::lower);
      continue;
    }
    if (bad >= 0 && bad_matrix < 0) bad_matrix = i, bad_pivot = bad;
    store(grid, out, Team::matrix<T>(l, i), layout, matrix.values.data(), matrix.ld, Part::lower);
  }
  if (bad_matrix >= 0) throw_not_positive_definite(a, bad_matrix, bad_pivot);
}

void talk(const TalkArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype, [&](auto zero) { factor_together<decltype(zero)>(args); });
}

// With phi(X) the lower triangle, its diagonal halved:  S = L^-H phi(L^H gL) L^-1  (Murray 2016). Only the
// lower triangle was read, so it
// gets what a symmetric change of both triangles would do: tril(S + S^H), the diagonal once.
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

const OpDef cholesky_op =
    factorization<dims>({.name = "cholesky", .infer = infer, .vjp = vjp, .flops = flops}, kernel, talk);
const Registered registered(cholesky_op);
const TakesWorkspace takes(cholesky_op, workspace);

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
