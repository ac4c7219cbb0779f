// cg, gmres, bicgstab: loops over a few vectors.
#include <tessera/control.hpp>
#include <tessera/linalg.hpp>

#include "base/call.hpp"
#include "ops/build.hpp"
#include "sparse/solver.hpp"
#include "types/extents.hpp"

namespace tessera::sparse {
namespace {

Array go_on(const SparseSystem& s, const Array& squares, const Array& count) {
  return (squares > s.limit) & (count < s.maxiter);
}
Solution solution(const SparseSystem& s, const Array& x, const Array& count, const Array& squares) {
  return {x, count, sqrt(squares), squares <= s.limit};
}
Array counter() { return zeros({}, int32); }

// ---- conjugate gradients ----

// u = m r and w = a u; gamma = (r, u). The image of the direction follows by recurrence, so that all inner
// products of a step are available at the same time.
struct CgState {
  Array x, r, u, w, direction, image, gamma, delta, squares, old_gamma, old_length, count;
};
CgState with_products(const SparseSystem& s, CgState state) {
  state.u = s.precondition(state.r);
  state.w = s.a(state.u);
  state.gamma = real_inner(state.r, state.u);
  state.delta = real_inner(state.w, state.u);
  state.squares = real_inner(state.r, state.r);
  return state;
}
CgState cg_step(const SparseSystem& s, const CgState& at) {
  const Array first = at.count == 0;
  const Array beta = where(first, zeros_like(at.gamma), at.gamma / at.old_gamma);
  const Array length = at.gamma / (at.delta - beta * at.gamma / at.old_length);
  CgState next = at;
  next.direction = at.u + beta * at.direction;
  next.image = at.w + beta * at.image;
  next.x = at.x + length * next.direction;
  next.r = at.r - length * next.image;
  next.old_gamma = at.gamma;
  next.old_length = length;
  next.count = at.count + 1;
  return with_products(s, next);
}
Solution run_cg(const SparseSystem& s) {
  CgState start;
  start.x = s.x0;
  start.r = s.b - s.a(s.x0);
  start.direction = start.image = zeros_like(s.b);
  start.count = counter();
  start = with_products(s, start);
  start.old_gamma = start.old_length = ones_like(start.gamma);
  const CgState end = while_loop([&](const CgState& at) { return go_on(s, at.squares, at.count); },
                                 [&](const CgState& at) { return cg_step(s, at); }, start);
  return solution(s, end.x, end.count, end.squares);
}

// ---- GMRES ----

// Reshapes weights (rows) to multiply (rows, b's shape): a weight for each row.
Array along_rows(const Array& weights, const Array& x) {
  return reshape(weights, with_ones(weights.shape(), x.shape().size() + 1));
}
Array in_row(const Array& chosen, const Array& x) {
  return where(along_rows(chosen, x), expand_dims(x, 0), zeros_like(x));
}
std::vector<int> all_but_first(const Array& rows) {
  std::vector<int> dims;
  for (int d = 1; d < rows.ndim(); ++d) dims.push_back(d);
  return dims;
}
Array products_with(const Array& rows, const Array& x) {
  const Array all = (is_complex(rows.dtype()) ? conj(rows) : rows) * expand_dims(x, 0);
  return sum(all, all_but_first(rows));
}
Array combined(const Array& rows, const Array& weights) {
  return sum(rows * along_rows(weights, rows(0)), 0);
}

struct Arnoldi {
  Array rows, coefficients;  // (m + 1, ...) orthonormal; (m + 1, m) upper Hessenberg
};
// Orthogonalizes twice, since one pass leaves rounding errors of nearly dependent vectors.
Arnoldi arnoldi_step(const SparseSystem& s, const Array& j, const Arnoldi& at) {
  const auto m = at.coefficients.shape()[1];
  const Array numbers = arange(m + 1);
  const Array own = combined(at.rows, cast_to(numbers == j, at.rows.dtype()));
  Array w = s.a(s.precondition(own));
  Array h = products_with(at.rows, w);
  w = w - combined(at.rows, h);
  const Array again = products_with(at.rows, w);
  w = w - combined(at.rows, again);
  h = h + again;
  const Array norm = sqrt(real_inner(w, w));
  const Array scale = where(norm > 0, 1 / norm, zeros_like(norm));
  const Array column = h + where(numbers == j + 1, norm, zeros_like(norm));
  return {at.rows + in_row(numbers == j + 1, scale * w),
          at.coefficients +
              where(expand_dims(arange(m) == j, 0), expand_dims(column, 1), zeros_like(at.coefficients))};
}

struct GmresState {
  Array x, r, squares, count;
};
GmresState gmres_cycle(const SparseSystem& s, const GmresState& at) {
  const int m = s.restart;
  const Array norm = sqrt(at.squares);
  const Array first = arange(m + 1) == 0;
  Arnoldi basis{in_row(first, at.r / norm), zeros({m + 1, m}, s.b.dtype())};
  basis = fori_loop(
      0, m, [&](const Array& j, const Arnoldi& now) { return arnoldi_step(s, j, now); }, basis);
  const Array start = cast_to(where(first, norm, zeros_like(norm)), s.b.dtype());
  const Array weights = linalg::lstsq(basis.coefficients, start);
  GmresState next = at;
  next.x = at.x + s.precondition(combined(basis.rows(slice(0, m)), weights));
  next.r = s.b - s.a(next.x);
  next.squares = real_inner(next.r, next.r);
  next.count = at.count + 1;
  return next;
}
Solution run_gmres(const SparseSystem& s) {
  const Array r = s.b - s.a(s.x0);
  const GmresState start{s.x0, r, real_inner(r, r), counter()};
  const auto end = while_loop([&](const GmresState& at) { return go_on(s, at.squares, at.count); },
                              [&](const GmresState& at) { return gmres_cycle(s, at); }, start);
  return solution(s, end.x, end.count, end.squares);
}

// ---- BiCGSTAB ----

struct StabState {
  Array x, r, direction, image, rho, old_rho, alpha, omega, squares, count;
};
StabState stab_step(const SparseSystem& s, const Array& shadow, const StabState& at) {
  const Array beta = at.rho / at.old_rho * (at.alpha / at.omega);
  StabState next = at;
  next.direction = at.r + beta * (at.direction - at.omega * at.image);
  const Array along = s.precondition(next.direction);
  next.image = s.a(along);
  next.alpha = at.rho / inner(shadow, next.image);
  const Array half = at.r - next.alpha * next.image;
  const Array second = s.precondition(half), t = s.a(second);
  const Array tt = real_inner(t, t), ts = inner(t, half);
  next.omega = where(tt > 0, ts / tt, zeros_like(ts));
  next.x = at.x + next.alpha * along + next.omega * second;
  next.r = half - next.omega * t;
  next.old_rho = at.rho;
  next.rho = inner(shadow, next.r);
  next.squares = real_inner(next.r, next.r);
  next.count = at.count + 1;
  return next;
}
Solution run_bicgstab(const SparseSystem& s) {
  const Array r = s.b - s.a(s.x0);
  const Array one = ones_like(inner(r, r)), rest = zeros_like(r);
  const StabState start{s.x0, r, rest, rest, inner(r, r), one, one, one, real_inner(r, r), counter()};
  // Also stops when the residual has become orthogonal to the shadow residual.
  const auto end =
      while_loop([&](const StabState& at) { return go_on(s, at.squares, at.count) & (abs(at.rho) > 0); },
                 [&](const StabState& at) { return stab_step(s, r, at); }, start);
  return solution(s, end.x, end.count, end.squares);
}

}  // namespace

Solution cg(const LinearMap& a, const Operand& b, SolverOptions options) {
  const Call call("cg", b.where);
  return solved(run_cg, a, b.array, options);
}
Solution gmres(const LinearMap& a, const Operand& b, SolverOptions options) {
  const Call call("gmres", b.where);
  return solved(run_gmres, a, b.array, options);
}
Solution bicgstab(const LinearMap& a, const Operand& b, SolverOptions options) {
  const Call call("bicgstab", b.where);
  return solved(run_bicgstab, a, b.array, options);
}

}  // namespace tessera::sparse
