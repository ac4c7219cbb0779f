// LU with partial pivoting, and its row exchanges as a permutation.
#include <algorithm>
#include <numeric>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

struct LuParams {
  FactorParams how;
  bool refuse_singular = false;
  template <class V> void fields(V&& visit) const {
    how.fields(visit);
    visit("refuse_singular", refuse_singular);
  }
};

BlockCyclic layout_of(const FactorParams& how, std::int64_t m, std::int64_t n, int ranks,
                      kernels::SumOrder order) {
  const GridShape grid = grid_shape(how, ranks, order);
  return block_cyclic(grid, m, n,
                      how.block > 0 ? how.block : block_size_of(std::min(m, n), grid.columns, order));
}
BlockCyclic layout_of(const MatrixGroupPlan& plan) {
  return layout_of(plan.params.as<LuParams>().how, extent(plan.in[0], 2), extent(plan.in[0], 1), plan.ranks,
                   plan.order);
}
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const BlockCyclic layout = layout_of(plan);
  ReceivedBytes traffic;
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[0], layout, me) * plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[0], layout, me) * plan.itemsize);
  predict_lu(traffic, {layout, me, plan.itemsize}, 0, true);
  return traffic;
}
std::int64_t memory(const MatrixGroupPlan& plan) {
  const BlockCyclic layout = layout_of(plan);
  return part_elements(layout, plan.itemsize) + panel_elements(layout);
}
const MatrixDims dims("B.. m n -> B.. m n, B.. k | whole m n k", {predicted, memory});

std::vector<Type> infer(std::span<const Type> in, const Params&) {
  const auto m = extent(in[0], 2), n = extent(in[0], 1);
  return {{in[0].shape, in[0].dtype}, {with_matrix_dims(in[0].shape, {std::min(m, n)}), int32}};
}

void kernel(const KernelArgs& args) {
  const Tile& a = args.in[0];
  kernels::lu_factor(a.dtype, batch_count(a), extent(a, 2), extent(a, 1), a.data, args.out[0].data,
                     args.out[1].as<std::int32_t>());
  if (!args.params.as<LuParams>().refuse_singular) return;
  const auto m = extent(a, 2), n = extent(a, 1);
  kernels::visit_inexact(a.dtype, [&](auto zero) {
    for (std::int64_t i = 0; i < batch_count(a); ++i)
      for (std::int64_t j = 0; j < std::min(m, n); ++j)
        if (MatrixGroup::matrix<decltype(zero)>(args.out[0], i)[j * n + j] == zero) throw_singular(a, i, j);
  });
}

template <class T, class Args> void factor_together(const Args& args) {
  const KernelArgs& local = local_of(args);
  const auto& params = local.params.template as<LuParams>();
  const auto& how = params.how;
  const MatrixGroup team(args, dims);
  const Grid grid(team.device_ids, grid_shape(how, team.ranks(), team.order), team.order);
  const Tile &a = local.in[0], &lu_tile = local.out[0], &exchanged = local.out[1];
  const std::int64_t m = a.global[a.global.size() - 2], n = a.global.back();
  const Tiles in = team.tiles_of(args, false, 0), out = team.tiles_of(args, true, 0);
  const BlockCyclic layout = layout_of(how, m, n, team.ranks(), team.order);
  std::vector<std::int64_t> pivots;
  std::int64_t bad_matrix = -1, bad_pivot = -1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    auto* exchanges = MatrixGroup::matrix<std::int32_t>(exchanged, i, 1);
    const auto magnitude = magnitude_of(grid, in, MatrixGroup::matrix<T>(a, i));
    if (!magnitude.is_finite()) {
      fill_nan(grid, out, MatrixGroup::matrix<T>(lu_tile, i));
      std::iota(exchanges, exchanges + std::min(m, n), 0);
      continue;
    }
    GridMatrix<T> matrix(grid, layout, 0, true);
    load(grid, in, MatrixGroup::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld);
    const int exponent = kernels::exponent_to_scale<T>(magnitude);
    scale(grid, matrix, exponent, Part::all);
    const std::int64_t zero_pivot = lu(grid, matrix, 0, true, pivots);
    if (zero_pivot >= 0 && bad_matrix < 0) bad_matrix = i, bad_pivot = zero_pivot;
    scale(grid, matrix, -exponent, Part::upper);  // undo the scaling in U; L has none
    store(grid, out, MatrixGroup::matrix<T>(lu_tile, i), layout, matrix.values.data(), matrix.ld);
    std::transform(pivots.begin(), pivots.end(), exchanges,
                   [](std::int64_t p) { return static_cast<std::int32_t>(p); });
  }
  if (bad_matrix >= 0 && params.refuse_singular) throw_singular(a, bad_matrix, bad_pivot);
}

// The algorithm of several ranks; in a ReproducibleScope one rank runs it too.
template <class Args> void together(const Args& args) {
  kernels::visit_inexact(local_of(args).in[0].dtype,
                         [&](auto zero) { factor_together<decltype(zero)>(args); });
}

// With P^T A = [L1; L2] [U1, U2] and cotangents split likewise (one of L2 and U2 is empty):
//   phi = tril(L1^H gL1 - gU2 U2^H, -1) + triu(gU1 U1^H - L2^H gL2)
//   P^T gA = [L1^-H phi U1^-H, L1^-H gU2; gL2 U1^-H]
Cotangents vjp(const VjpArgs& v) {
  if (!v.cotangents[0].node()) return {Array()};
  const Array &lu = v.out[0], g = v.cotangents[0];
  const auto m = extent(type_of(lu), 2), n = extent(type_of(lu), 1), k = std::min(m, n);
  const auto block = [&](const Array& x, std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) {
    return r0 == 0 && r1 == m && c0 == 0 && c1 == n ? x : x(ellipsis, slice(r0, r1), slice(c0, c1));
  };
  const Array square = block(lu, 0, k, 0, k), g_square = block(g, 0, k, 0, k);
  const Array l1 = lower_part(square, -1) + diagonal_mask(square, square.dtype()), u1 = upper_part(square);
  Array below_diagonal = matmul(transposed(l1), lower_part(g_square, -1)),
        above_diagonal = matmul(upper_part(g_square), transposed(u1));
  const auto left = [&](const Array& x) {
    return triangular_solve(l1, x, {.lower = true, .transpose = true, .unit_diagonal = true});
  };
  const auto right = [&](const Array& x) {
    return transposed(triangular_solve(u1, transposed(x), {}));
  };  // x U1^-T
  if (n > k)
    below_diagonal = below_diagonal - matmul(block(g, 0, k, k, n), transposed(block(lu, 0, k, k, n)));
  if (m > k)
    above_diagonal = above_diagonal - matmul(transposed(block(lu, k, m, 0, k)), block(g, k, m, 0, k));
  Array result = right(left(lower_part(below_diagonal, -1) + upper_part(above_diagonal)));
  if (n > k) result = concatenate({result, left(block(g, 0, k, k, n))}, -1);
  if (m > k) result = concatenate({result, right(block(g, k, m, 0, k))}, -2);
  const Array row_of = argsort(pivots_to_permutation(v.out[1], m), -1);
  return {take_along_axis(result, broadcast_to(expand_dims(row_of, -1), result.shape()), -2)};
}

double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  return static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(std::min(extent(in[0], 1), extent(in[0], 2))) * 2 / 3;
}

std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack([&] {
    return kernels::lu_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 2), extent(in[0], 1));
  });
}

extern const OpDef ordered_lu_op;
const OpDef lu_op = with_ordered<ordered_lu_op>(factorization<dims>(
    {.name = "lu_factor", .infer = infer, .vjp = vjp, .flops = flops}, kernel, together<CommunicationArgs>));
const OpDef ordered_lu_op = ordered_record(lu_op, together<KernelArgs>);
const RegisteredPair<dims> registered(lu_op, ordered_lu_op, workspace);

struct PermutationParams {
  std::int64_t rows;
  template <class V> void fields(V&& visit) const { visit("rows", rows); }
};
const OpDef permutation_op{
    .name = "pivots_to_permutation",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{with_matrix_dims(in[0].shape, {p.as<PermutationParams>().rows}, 1), int32}};
    },
    .sharding = Rule("B.. k -> B.. m | whole k m"),
    .runs = Kernel{[](const KernelArgs& args) {
      const std::int64_t rows = args.params.as<PermutationParams>().rows, steps = extent(args.in[0], 1);
      for (std::int64_t i = 0; i < batch_count(args.in[0], 1); ++i) {
        const auto* exchanged = MatrixGroup::matrix<std::int32_t>(args.in[0], i, 1);
        auto* permutation = MatrixGroup::matrix<std::int32_t>(args.out[0], i, 1);
        std::iota(permutation, permutation + rows, 0);
        for (std::int64_t s = 0; s < steps; ++s)
          if (exchanged[s] >= 0 && exchanged[s] < rows) std::swap(permutation[s], permutation[exchanged[s]]);
      }
    }},
    .vjp = NoRule{"its operand holds integers"},
    .batch = batch_leading,
    .parts = Parts::all_dims,
};
const Registered registered_permutation(permutation_op);

}  // namespace

std::pair<Array, Array> lu_factor(const Array& a, SolveHow how) {
  auto results =
      record_all(lu_op, make_params(LuParams{{how.block, how.grid_rows}, how.refuse_singular}), {a});
  return {results[0], results[1]};
}

Array pivots_to_permutation(const Array& pivots, std::int64_t rows) {
  return record(permutation_op, make_params(PermutationParams{rows}), {pivots});
}

}  // namespace tessera::factor
