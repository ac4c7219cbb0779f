// Solves a x = b by LU with partial pivoting: x gets the layout of b.
#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "kernels/factor/lapack_workspace.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"
#include "ops/factor/grid_algorithms.hpp"
#include "ops/functions.hpp"

namespace tessera::factor {
namespace {

std::vector<Type> infer(std::span<const Type> in, const Params&) { return {{in[1].shape, in[1].dtype}}; }

struct SolveParams {
  FactorParams how;
  IllConditioned ill_conditioned = IllConditioned::accept;
  bool divide_by_zero = false;  // zero pivots are divided by; otherwise they raise LinAlgError
  template <class V> void fields(V&& visit) const {
    how.fields(visit);
    visit("ill_conditioned", static_cast<int>(ill_conditioned));
    visit("divide_by_zero", divide_by_zero);
  }
};

BlockCyclic layout_of(const FactorParams& how, std::int64_t n, int ranks, kernels::SumOrder order) {
  const GridShape grid = grid_shape(how, ranks, order);
  return block_cyclic(grid, n, n, how.block > 0 ? how.block : block_size_of(n, grid.columns, order));
}
// The layouts of a system on the grid; the right-hand sides include that of random signs.
struct OnGrid {
  explicit OnGrid(const MatrixGroupPlan& plan)
      : layout(layout_of(plan.params.as<SolveParams>().how, extent(plan.in[0], 1), plan.ranks, plan.order)),
        right({layout.rows.parts, layout.columns.parts}, layout.rows, sides(plan), plan.order) {}
  static std::int64_t sides(const MatrixGroupPlan& plan) {
    std::int64_t k = plan.params.as<SolveParams>().ill_conditioned != IllConditioned::accept;
    const std::int64_t signs = k;
    for (const auto& box : plan.in_tiles[1].held) k = std::max(k, box.columns.stop + signs);
    return k;
  }
  BlockCyclic layout;
  RightSides right;
};
ReceivedBytes predicted(const MatrixGroupPlan& plan, int me) {
  const OnGrid system(plan);
  ReceivedBytes traffic;
  const GridRank listener{system.layout, me, plan.itemsize};
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[0], system.layout, me) * plan.itemsize);
  traffic.redistributed.add(loaded_from_others(plan.in_tiles[1], system.right.layout, me) * plan.itemsize);
  traffic.redistributed.add(stored_from_others(plan.out_tiles[0], system.right.layout, me) * plan.itemsize);
  predict_lu(traffic, listener, system.right.layout.columns.count(listener.column()), false);
  predict_substitution(traffic, listener, system.right.layout, system.right.few, false);
  return traffic;
}
std::int64_t memory(const MatrixGroupPlan& plan) {
  const OnGrid system(plan);
  return part_elements(system.layout, plan.itemsize) + part_elements(system.right.layout, plan.itemsize) +
         panel_elements(system.layout);
}
const MatrixDims dims("B.. n n, B.. n c -> B.. n c | whole n", {predicted, memory}, 1);

// The limit is epsilon for any n, as in LAPACK's xGESVX (info = n + 1), SciPy and MATLAB: n * epsilon would
// reject most float32 systems of a thousand unknowns, which are solved to several digits.
void judge_condition(IllConditioned wanted, const Tile& a, std::int64_t element, double rcond,
                     Reporter reporter) {
  if (!(rcond < epsilon(a.dtype))) return;
  if (wanted == IllConditioned::refuse) throw_ill_conditioned(a, element, rcond);
  warn_of_condition(a, element, rcond, reporter);
}

// x = U^-1 L^-1 P b in plain arithmetic: a zero pivot gives infinities and NaN, as two triangular solves do.
template <class T> void solve_by_factor(std::int64_t n, std::int64_t k, const T* a, const T* b, T* x) {
  std::vector<T> factor(n * n), permuted(b, b + n * k), y(n * k);
  std::vector<std::int32_t> pivots(n);
  const Dtype dtype = dtype_of<T>();
  kernels::lu_factor(dtype, 1, n, n, a, factor.data(), pivots.data());
  for (std::int64_t i = 0; i < n; ++i)
    if (pivots[i] != i) std::swap_ranges(&permuted[i * k], &permuted[i * k] + k, &permuted[pivots[i] * k]);
  kernels::triangular_solve(dtype, 1, n, k, {.lower = true, .unit_diagonal = true}, factor.data(),
                            permuted.data(), y.data());
  kernels::triangular_solve(dtype, 1, n, k, {}, factor.data(), y.data(), x);
}
// A batch with singular matrices, one matrix after the other.
void solve_with_singular(const Tile& a, const Tile& b, const Tile& x) {
  const std::int64_t n = extent(b, 2), k = extent(b, 1);
  kernels::visit_inexact(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < batch_count(b); ++i) {
      const T *one = MatrixGroup::matrix<T>(a, i), *sides = MatrixGroup::matrix<T>(b, i);
      T* solution = MatrixGroup::matrix<T>(x, i);
      if (kernels::solve(a.dtype, 1, n, k, one, sides, solution).happened())
        solve_by_factor(n, k, one, sides, solution);
    }
  });
}

void kernel(const KernelArgs& args) {
  const Tile &a = args.in[0], &b = args.in[1], &x = args.out[0];
  const auto wanted = args.params.as<SolveParams>().ill_conditioned;
  std::vector<double> rcond(wanted == IllConditioned::accept ? 0 : batch_count(b));
  const auto breakdown = kernels::solve(x.dtype, batch_count(b), extent(b, 2), extent(b, 1), a.data, b.data,
                                        x.data, rcond.empty() ? nullptr : rcond.data());
  if (breakdown.happened()) {
    if (!args.params.as<SolveParams>().divide_by_zero) throw_singular(a, breakdown.matrix, breakdown.index);
    return solve_with_singular(a, b, x);
  }
  if (rcond.empty()) return;
  const auto worst = std::min_element(rcond.begin(), rcond.end());
  judge_condition(wanted, a, worst - rcond.begin(), *worst,
                  a.box == whole_box(a.global) ? Reporter::first_rank : Reporter::this_rank);
}

// One system on several ranks: both sides as tiles, and their sizes.
template <class T> struct Sides {
  Tiles a_tiles, b_tiles, x_tiles;
  const T *a, *b;
  T* x;
};

// Columns of b that are not finite give columns of NaN.
template <class T> void blank_columns(const Grid& grid, const Sides<T>& sides, std::int64_t k) {
  std::vector<std::int32_t> is_bad(k, 0);
  const Rectangle &held = sides.b_tiles.held[grid.rank], &wanted = sides.x_tiles.held[grid.rank];
  const auto each = [](const Tiles& tiles, const Rectangle& box, auto* tile, auto&& visit) {
    for (std::int64_t i = 0; i < box.rows.size(); ++i)
      for (std::int64_t j = 0; j < box.columns.size(); ++j)
        visit(tile[i * tiles.row_step + j], box.columns.start + j);
  };
  each(sides.b_tiles, held, sides.b, [&](const T& value, std::int64_t column) {
    kernels::Magnitude one;
    one.add(&value, 1);
    is_bad[column] |= !one.is_finite();
  });
  counted::all_reduce(*grid.all, ReduceKind::max, int32, is_bad.data(), k);
  each(sides.x_tiles, wanted, sides.x, [&](T& value, std::int64_t column) {
    if (is_bad[column] != 0) kernels::fill_nan(&value, 1);
  });
}

// A system on the grid. `conditioned` adds a right-hand side of random signs that estimates the condition.
template <class T> class GridSolve {
 public:
  GridSolve(const Grid& grid, const BlockCyclic& layout, std::int64_t k, bool conditioned,
            bool divide_by_zero)
      : grid_(grid),
        layout_(layout),
        k_(k),
        conditioned_(conditioned),
        divide_by_zero_(divide_by_zero),
        right_(grid.shape, layout.rows, k + (conditioned ? 1 : 0), grid.order),
        right_columns_(right_.layout.columns.count(grid.column)) {}

  // Returns the index of the first zero pivot, or -1.
  std::int64_t run(const Sides<T>& sides) {
    kernels::Magnitude magnitudes[] = {magnitude_of_part(grid_, sides.a_tiles, sides.a),
                                       magnitude_of_part(grid_, sides.b_tiles, sides.b)};
    combine(grid_, magnitudes);
    const auto& [of_a, of_b] = magnitudes;
    rcond_ = 1;
    if (!of_a.is_finite()) {
      fill_nan(grid_, sides.x_tiles, sides.x);
      return -1;
    }
    GridMatrix<T> matrix(grid_, layout_, right_columns_, true);
    T* y = matrix.at(0, matrix.columns);
    load(grid_, sides.a_tiles, sides.a, layout_, matrix.values.data(), matrix.ld);
    load(grid_, sides.b_tiles, sides.b, right_.layout, y, matrix.ld);
    const int exponent = kernels::exponent_to_scale<T>(of_a),
              exponent_of_b = exponent == 0 ? 0 : kernels::exponent_to_scale<T>(of_b);
    scale(grid_, matrix, exponent, Part::all);
    scale_sides(matrix, y, exponent_of_b);
    T* const signs = conditioned_ ? write_signs(matrix, y) : nullptr;
    const auto zero_pivot = lu(grid_, matrix, right_columns_, false, pivots_);
    if (zero_pivot >= 0 && !divide_by_zero_) return zero_pivot;
    if (right_.few)
      substitute_few(grid_, matrix, false, false, y, matrix.ld, right_.layout.columns.extent);
    else
      substitute(grid_, matrix, false, false, y, matrix.ld, right_columns_);
    if (conditioned_) rcond_ = condition(of_a.scaled(exponent), signs, matrix.rows);
    scale_sides(matrix, y, exponent - exponent_of_b);
    store(grid_, sides.x_tiles, sides.x, right_.layout, y, matrix.ld);
    if (!of_b.is_finite()) blank_columns(grid_, sides, k_);
    return -1;
  }
  double rcond() const { return rcond_; }

 private:
  void scale_sides(const GridMatrix<T>& matrix, T* y, int exponent) const {
    for (std::int64_t j = 0; exponent != 0 && j < right_columns_; ++j)
      kernels::scale(y + j * matrix.ld, matrix.rows, exponent);
  }
  // Writes the signs, on the grid column that holds them.
  T* write_signs(const GridMatrix<T>& matrix, T* y) const {
    if (right_.layout.columns.owner(k_) != grid_.column) return nullptr;
    T* const signs = y + right_.layout.columns.local(k_) * matrix.ld;
    for (std::int64_t i = 0; i < matrix.rows; ++i)
      signs[i] = static_cast<real_of<T>>(kernels::random_sign(layout_.rows.global(grid_.row, i)));
    return signs;
  }
  double condition(const kernels::Magnitude& of_a, const T* signs, std::int64_t rows) const {
    kernels::Magnitude solution;
    if (signs != nullptr) solution.add(signs, rows);
    combine(grid_, {&solution, 1});
    return kernels::estimated_rcond(layout_.rows.extent, of_a, solution);
  }

  const Grid& grid_;
  const BlockCyclic layout_;
  const std::int64_t k_;
  const bool conditioned_, divide_by_zero_;
  const RightSides right_;
  const std::int64_t right_columns_;
  std::vector<std::int64_t> pivots_;
  double rcond_ = 1;
};

template <class T, class Args> void solve_together(const Args& args) {
  const KernelArgs& local = local_of(args);
  const auto& [how, wanted, divide_by_zero] = local.params.template as<SolveParams>();
  const MatrixGroup team(args, dims);
  const Grid grid(team.device_ids, grid_shape(how, team.ranks(), team.order), team.order);
  const Tile &a = local.in[0], &b = local.in[1], &x = local.out[0];
  const std::int64_t n = a.global.back();
  Sides<T> sides{
      team.tiles_of(args, false, 0), team.tiles_of(args, false, 1), team.tiles_of(args, true, 0), {}, {}, {}};
  std::int64_t k = 0;
  for (const auto& box : sides.b_tiles.held) k = std::max(k, box.columns.stop);
  const BlockCyclic layout = layout_of(how, n, team.ranks(), team.order);
  GridSolve<T> solve(grid, layout, k, wanted != IllConditioned::accept && n > 0, divide_by_zero);
  std::int64_t bad_matrix = -1, bad_pivot = -1, worst_matrix = 0;
  double worst = 1;
  for (std::int64_t i = 0; i < team.matrices; ++i) {
    sides.a = MatrixGroup::matrix<T>(a, i), sides.b = MatrixGroup::matrix<T>(b, i),
    sides.x = MatrixGroup::matrix<T>(x, i);
    const std::int64_t zero_pivot = solve.run(sides);
    if (zero_pivot >= 0 && bad_matrix < 0) bad_matrix = i, bad_pivot = zero_pivot;
    if (solve.rcond() < worst) worst = solve.rcond(), worst_matrix = i;
  }
  if (bad_matrix >= 0) throw_singular(a, bad_matrix, bad_pivot);
  const Reporter alone = a.box == whole_box(a.global) ? Reporter::first_rank : Reporter::this_rank;
  judge_condition(wanted, a, worst_matrix, worst,
                  team.ranks() == 1 ? alone
                  : grid.rank == 0  ? Reporter::this_rank
                                    : Reporter::another);
}

// The algorithm of several ranks; in a ReproducibleScope one rank runs it too.
template <class Args> void together(const Args& args) {
  kernels::visit_inexact(local_of(args).in[0].dtype,
                         [&](auto zero) { solve_together<decltype(zero)>(args); });
}

// x = a^-1 b: the cotangent of b is a solve with a^T, that of a is minus its outer product with x.
Cotangents vjp(const VjpArgs& v) {
  const auto& [how, wanted, divide_by_zero] = v.node.params->as<SolveParams>();
  const Array b_bar =
      solve(transposed(v.in[0]), v.cotangents[0],
            {.block = how.block, .grid_rows = how.grid_rows, .divide_by_zero = divide_by_zero});
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

std::int64_t workspace(std::span<const Type> in, std::span<const Type>, const Params&) {
  return workspace_of_lapack([&] {
    return kernels::solve_workspace(in[0].dtype, batch_count(in[1]), extent(in[1], 2), extent(in[1], 1));
  });
}

extern const OpDef ordered_solve_op;
const OpDef solve_op = with_ordered<ordered_solve_op>(factorization<dims>(
    {.name = "solve", .infer = infer, .vjp = vjp, .flops = flops}, kernel, together<CommunicationArgs>));
const OpDef ordered_solve_op = ordered_record(solve_op, together<KernelArgs>);
const RegisteredPair<dims> registered(solve_op, ordered_solve_op, workspace);

}  // namespace

Array solve(const Array& a, const Array& b, SolveHow how) {
  return record(solve_op,
                make_params(SolveParams{{how.block, how.grid_rows}, how.ill_conditioned, how.divide_by_zero}),
                {a, b});
}

}  // namespace tessera::factor
