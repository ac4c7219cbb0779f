// Triangular systems: x gets the layout of b.
#include <algorithm>

#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

BlockCyclic layout_of(std::int64_t n, int ranks, kernels::SumOrder order) {
  const GridShape grid = grid_shape({}, ranks, order);
  return block_cyclic(grid, n, n, block_size_of(n, grid.columns, order));
}
RightSides right_of(const BlockCyclic& layout, const Tiles& sides, kernels::SumOrder order) {
  std::int64_t k = 0;
  for (const auto& box : sides.held) k = std::max(k, box.columns.stop);
  return {{layout.rows.parts, layout.columns.parts}, layout.rows, k, order};
}
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const auto& t = plan.params.as<Triangle>();
  const BlockCyclic layout = layout_of(extent(plan.in[0], 1), plan.ranks, plan.order);
  const RightSides right = right_of(layout, plan.in_tiles[1], plan.order);
  const Tiles a = t.transpose ? plan.in_tiles[0].transposed() : plan.in_tiles[0];
  ReceivedBytes traffic;
  traffic.redistributed.add(loaded_from_others(a, layout, me) * plan.itemsize);
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[1], right.layout, me) * plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[0], right.layout, me) * plan.itemsize);
  predict_substitution(traffic, {layout, me, plan.itemsize}, right.layout, right.few, t.lower != t.transpose);
  return traffic;
}
std::int64_t memory(const MatrixGroupPlan& plan) {
  const BlockCyclic layout = layout_of(extent(plan.in[0], 1), plan.ranks, plan.order);
  const RightSides right = right_of(layout, plan.in_tiles[1], plan.order);
  return part_elements(layout, plan.itemsize) + part_elements(right.layout, plan.itemsize) +
         panel_elements(layout) / 2;
}
const MatrixDims dims("B.. n n, B.. n c -> B.. n c | whole n", {predicted, memory}, 1);

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[1].shape, in[1].dtype}}; }

kernels::TriangleUse use_of(const Triangle& t) {
  return {t.lower, t.transpose, t.conjugate, t.unit_diagonal};
}

void kernel(const KernelArgs& args) {
  const Tile& b = args.in[1];
  kernels::triangular_solve(b.dtype, batch_count(b), extent(b, 2), extent(b, 1),
                            use_of(args.params.as<Triangle>()), args.in[0].data, b.data, args.out[0].data);
}

// A transposed triangle is transposed during its redistribution to the block-cyclic layout.
template <class T, class Args> void solve_together(const Args& args) {
  const KernelArgs& local = local_of(args);
  const auto& t = local.params.template as<Triangle>();
  const MatrixGroup team(args, dims);
  const Grid grid(team.device_ids, grid_shape({}, team.ranks(), team.order), team.order);
  const Tile &a = local.in[0], &b = local.in[1], &x = local.out[0];
  const std::int64_t n = a.global.back();
  Tiles a_tiles = team.tiles_of(args, false, 0);
  const Tiles a_as_given = a_tiles;
  if (t.transpose) a_tiles = a_tiles.transposed();
  a_tiles.conjugate = t.conjugate;
  const bool lower = t.lower != t.transpose;
  const Tiles b_tiles = team.tiles_of(args, false, 1), x_tiles = team.tiles_of(args, true, 0);
  const BlockCyclic layout = layout_of(n, team.ranks(), team.order);
  const RightSides right = right_of(layout, b_tiles, team.order);
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    GridMatrix<T> matrix(grid, layout), solution(grid, right.layout);
    load(grid, a_tiles, MatrixGroup::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld);
    load(grid, b_tiles, MatrixGroup::matrix<T>(b, i), right.layout, solution.values.data(), solution.ld);
    kernels::Magnitude magnitudes[] = {magnitude_of_part(grid, a_as_given, MatrixGroup::matrix<T>(a, i),
                                                         t.lower ? Part::lower : Part::upper),
                                       magnitude_of_part(grid, b_tiles, MatrixGroup::matrix<T>(b, i))};
    combine(grid, magnitudes);
    const int exponent = t.unit_diagonal ? 0 : kernels::exponent_to_scale<T>(magnitudes[0]),
              of_sides = exponent == 0 ? 0 : kernels::exponent_to_scale<T>(magnitudes[1]);
    scale(grid, matrix, exponent, Part::all);
    scale(grid, solution, of_sides, Part::all);
    if (right.few)
      substitute_few(grid, matrix, lower, t.unit_diagonal, solution.values.data(), solution.ld,
                     right.layout.columns.extent);
    else
      substitute(grid, matrix, lower, t.unit_diagonal, solution.values.data(), solution.ld, solution.columns);
    scale(grid, solution, exponent - of_sides, Part::all);
    store(grid, x_tiles, MatrixGroup::matrix<T>(x, i), right.layout, solution.values.data(), solution.ld);
  }
}

// The algorithm of several ranks; in a ReproducibleScope one rank runs it too.
template <class Args> void together(const Args& args) {
  kernels::visit_inexact(local_of(args).in[0].dtype,
                         [&](auto zero) { solve_together<decltype(zero)>(args); });
}

// op(a) x = b: the cotangent of b is a solve with op(a)^T, that of op(a) is minus its outer product with x,
// on the triangle that was read.
Cotangents vjp(const VjpArgs& v) {
  const auto& t = v.node.params->as<Triangle>();
  Triangle turned = t;
  turned.transpose = !t.transpose;
  const Array b_bar = triangular_solve(v.in[0], v.cotangents[0], turned);
  Cotangents result(2);
  if (v.wanted[0]) {
    Array a_bar = t.transpose ? matmul(v.out[0], transposed(b_bar)) : matmul(b_bar, transposed(v.out[0]));
    if (t.conjugate && is_complex(a_bar.dtype())) a_bar = conj(a_bar);
    const int off = t.unit_diagonal ? 1 : 0;
    result[0] = -(t.lower ? lower_part(a_bar, -off) : upper_part(a_bar, off));
  }
  if (v.wanted[1]) result[1] = b_bar;
  return result;
}

double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  return static_cast<double>(extent(in[0], 1)) * static_cast<double>(in[1].shape.elements());
}

std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params& p) {
  return kernels::triangular_workspace(in[0].dtype, batch_count(in[0]), extent(in[0], 1),
                                       use_of(p.as<Triangle>()));
}

extern const OpDef ordered_triangular_op;
const OpDef triangular_op = with_ordered<ordered_triangular_op>(
    factorization<dims>({.name = "triangular_solve", .infer = infer, .vjp = vjp, .flops = flops}, kernel,
                        together<CommunicationArgs>));
const OpDef ordered_triangular_op = ordered_record(triangular_op, together<KernelArgs>);
const RegisteredPair<dims> registered(triangular_op, ordered_triangular_op, workspace);

}  // namespace

Array triangular_solve(const Array& a, const Array& b, Triangle triangle) {
  return record(triangular_op, make_params(triangle), {a, b});
}

}  // namespace tessera::factor
