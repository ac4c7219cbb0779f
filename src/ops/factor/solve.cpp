// a x = b by LU with partial pivoting: x lies as b.
#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

const MatrixDims dims("B.. n n, B.. n c -> B.. n c | whole n", 1);

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[1].shape, in[1].dtype}}; }

void kernel(const KernelArgs& args) {
  const Tile &a = args.in[0], &b = args.in[1], &x = args.out[0];
  const auto breakdown =
      kernels::solve(x.dtype, batch_count(b), extent(b, 2), extent(b, 1), a.data, b.data, x.data);
  if (breakdown.happened()) throw_singular(a, breakdown.matrix, breakdown.index);
}

template <class T> void solve_together(const TalkArgs& args) {
  const auto& how = args.local.params.as<FactorParams>();
  const Team team(args, dims);
  const Grid grid(team.device_ids, grid_shape(how, static_cast<int>(team.device_ids.size())));
  const Tile &a = args.local.in[0], &b = args.local.in[1], &x = args.local.out[0];
  const std::int64_t n = a.global.back();
  const Tiles a_tiles = team.tiles_of(args, false, 0), b_tiles = team.tiles_of(args, false, 1),
              x_tiles = team.tiles_of(args, true, 0);
  std::int64_t k = 0;
  for (const auto& box : b_tiles.held) k = std::max(k, box.columns.stop);
  const std::int64_t block = how.block > 0 ? how.block : block_for(n, grid.shape.columns, widest_block(n));
  const BlockCyclic layout{{n, block, grid.shape.rows}, {n, block, grid.shape.columns}};
  const RightSides right(grid, layout.rows, k);
  const std::int64_t right_columns = right.layout.columns.count(grid.column);
  std::int64_t bad_matrix = -1, bad_pivot = -1;
  std::vector<std::int64_t> pivots;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    GridMatrix<T> matrix(grid, layout, right_columns, true);
    T* y = matrix.at(0, matrix.columns);
    load(grid, a_tiles, Team::matrix<T>(a, i), layout, matrix.values.data(), matrix.ld);
    load(grid, b_tiles, Team::matrix<T>(b, i), right.layout, y, matrix.ld);
    const std::int64_t zero_pivot = lu(grid, matrix, right_columns, false, pivots);
    if (zero_pivot >= 0) {
      if (bad_matrix < 0) bad_matrix = i, bad_pivot = zero_pivot;
      continue;
    }
    if (right.few)
      substitute_few(grid, matrix, false, false, y, matrix.ld, k);
    else
      substitute(grid, matrix, false, false, y, matrix.ld, right_columns);
    store(grid, x_tiles, Team::matrix<T>(x, i), right.layout, y, matrix.ld);
  }
  if (bad_matrix >= 0) throw_singular(a, bad_matrix, bad_pivot);
}

void talk(const TalkArgs& args) {
  kernels::visit_inexact(args.local.in[0].dtype, [&](auto zero) { solve_together<decltype(zero)>(args); });
}

// x = a^-1 b:  b's cotangent solves with a^T, a's is minus its outer product with x.
Cotangents vjp(const VjpArgs& v) {
  const auto& how = v.node.params->as<FactorParams>();
  const Array b_bar = solve(transposed(v.in[0]), v.cotangents[0], {how.block, how.grid_rows});
  Cotangents result(2);
  if (v.wanted[0]) result[0] = -matmul(b_bar, transposed(v.out[0]));
  if (v.wanted[1]) result[1] = b_bar;
  return result;
}

double flops(std::span<const Type> in, std::span<const Type>, const Params&) {
  const auto n = static_cast<double>(extent(in[0], 1));
  return n * static_cast<double>(in[0].shape.elements()) * 2 / 3 +
         2 * n * static_cast<double>(in[1].shape.elements());
}

const OpDef solve_op =
    factorization<dims>({.name = "solve", .infer = infer, .vjp = vjp, .flops = flops}, kernel, talk);
const Registered registered(solve_op);

}  // namespace

Array solve(const Array& a, const Array& b, SolveHow how) {
  return record(solve_op, make_params(FactorParams{how.block, how.grid_rows}), {a, b});
}

}  // namespace tessera::factor
