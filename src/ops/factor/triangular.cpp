// Triangular systems: x lies as b.
#include <algorithm>

#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

const MatrixDims dims("B.. n n, B.. n c -> B.. n c | whole n", 1, true);

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[1].shape, in[1].dtype}}; }

void kernel(const KernelArgs& args) {
  const auto& t = args.params.as<Triangle>();
  const Tile& b = args.in[1];
  kernels::triangular_solve(b.dtype, batch_count(b), extent(b, 2), extent(b, 1),
                            {t.lower, t.transpose, t.conjugate, t.unit_diagonal}, args.in[0].data, b.data,
                            args.out[0].data);
}

// A transposed triangle is turned around on its way to the block-cyclic layout.
template <class T> void solve_together(const TalkArgs& args) {
  const auto& t = args.local.params.as<Triangle>();
  const Team team(args, dims);
  const Grid grid(team.device_ids, grid_for(static_cast<int>(team.device_ids.size())));
  const Tile &a = args.local.in[0], &b = args.local.in[1], &x = args.local.out[0];
  const std::int64_t n = a.global.back();
  Tiles a_tiles = team.tiles_of(args, false, 0);
  const Tiles a_as_given = a_tiles;
  if (t.transpose) a_tiles = a_tiles.transposed();
  a_tiles.conjugate = t.conjugate;
  const bool lower = t.lower != t.transpose;
  const Tiles b_tiles = team.tiles_of(args, false, 1), x_tiles = team.tiles_of(args, true, 0);
  std::int64_t k = 0;
  for (const auto& box : b_tiles.held) k = std::max(k, box.columns.stop);
  const std::int64_t block = block_for(n, grid.shape.columns, widest_block(n));
  const BlockCyclic layout{{n, block, grid.shape.rows}, {n, block, grid.shape.columns}};
  const RightSides right(grid, layout.rows, k);
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    GridMatrix<T> matrix(grid, layout), solution(grid, right.layout);
    load(grid, a_tiles, Team::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld);
    load(grid, b_tiles, Team::matrix<T>(b, i), right.layout, solution.values.data(), solution.ld);
    kernels::Magnitude magnitudes[] = {
        magnitude_of_part(grid, a_as_given, Team::matrix<T>(a, i), t.lower ? Part::lower : Part::upper),
        magnitude_of_part(grid, b_tiles, Team::matrix<T>(b, i))};
    combine(grid, magnitudes);
    const int exponent = t.unit_diagonal ? 0 : kernels::exponent_to_scale<T>(magnitudes[0]),
              of_sides = exponent == 0 ? 0 : kernels::exponent_to_scale<T>(magnitudes[1]);
    scale(grid, matrix, exponent, Part::all);
    scale(grid, solution, of_sides, Part::all);
    if (right.few)
      substitute_few(grid, matrix, lower, t.unit_diagonal, solution.values.data(), solution.ld, k);
    else
      substitute(grid, matrix, lower, t.unit_diagonal, solution.values.data(), solution.ld, solution.columns);
    scale(grid, solution, exponent - of_sides, Part::all);
    store(grid, x_tiles, Team::matrix<T>(x, i), right.layout, solution.values.data(), solution.ld);
  }
}

void talk(const TalkArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype, [&](auto zero) { solve_together<decltype(zero)>(args); });
}

// op(a) x = b:  b's cotangent solves with op(a)^T, op(a)'s is minus its outer product with x, on the
// triangle that was read.
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

const OpDef triangular_op = factorization<dims>(
    {.name = "triangular_solve", .infer = infer, .vjp = vjp, .flops = flops}, kernel, talk);
const Registered registered(triangular_op);

}  // namespace

Array triangular_solve(const Array& a, const Array& b, Triangle triangle) {
  return record(triangular_op, make_params(triangle), {a, b});
}

}  // namespace tessera::factor
