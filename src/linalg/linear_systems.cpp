// solve, lu, cholesky and related functions.
#include <algorithm>
#include <cmath>

#include "control/control_flow.hpp"
#include "linalg/operands.hpp"

namespace tessera::linalg {
namespace {

using factor::adjoint;

Array identity_like(const Array& a) { return broadcast_to(eye(rows_of(a), a.dtype()), a.shape()); }

// Factors in half the precision and corrects with residuals in full precision: each round gains as many
// digits as the factor has.
Array solve_refined(const System& s, factor::SolveHow how) {
  const Dtype half = is_complex(s.a.dtype()) ? complex64 : float32;
  if (s.a.dtype() == half) return factor::solve(s.a, s.b, how);
  constexpr int rounds = 3;
  how.refuse_singular = true;
  const auto [lu, pivots] = factor::lu_factor(astype(s.a, half), how);
  const LuFactor factored{lu, pivots};
  Array x = astype(lu_solve(factored, astype(s.b, half)), s.a.dtype());
  for (int i = 0; i < rounds; ++i) {
    const Array residual = s.b - placed_as(matmul(s.a, x), s.b);
    x = x + astype(lu_solve(factored, astype(residual, half)), s.a.dtype());
  }
  return x;
}

void check_options(const SolveOptions& options) {
  if (options.block < 0 || options.grid_rows < 0)
    throw ArgumentError(call_text() + ": block is " + std::to_string(options.block) + " and grid_rows " +
                        std::to_string(options.grid_rows) +
                        "; they must not be negative (0 leaves the choice to the library)");
}

}  // namespace

Array solve(const Operand& a, const Operand& b, SolveOptions options) {
  const Call call("solve", a.where);
  check_options(options);
  const System s = system_of(a, b, true);
  const factor::SolveHow how{
      .block = options.block, .grid_rows = options.grid_rows, .ill_conditioned = options.ill_conditioned};
  return as_given(s, options.refine ? solve_refined(s, how) : factor::solve(s.a, s.b, how));
}

LuFactor lu_factor(const Operand& a, SolveOptions options) {
  const Call call("lu_factor", a.where);
  check_options(options);
  auto [lu, pivots] = factor::lu_factor(matrices(a, false), {options.block, options.grid_rows});
  return {lu, pivots};
}

LU lu(const Operand& operand) {
  const Call call("lu", operand.where);
  const Array a = matrices(operand, false);
  const auto [packed, pivots] = factor::lu_factor(a, {});
  const std::int64_t m = rows_of(a), n = columns_of(a), k = std::min(m, n);
  const Array left = n > k ? packed(ellipsis, slice(), slice(0, k)) : packed,
              right = m > k ? packed(ellipsis, slice(0, k), slice()) : packed;
  // Row i of L U is row permutation[i] of a: p[permutation[i], i] = 1.
  const Array permutation = expand_dims(factor::pivots_to_permutation(pivots, m), -2);
  const Array p =
      astype(equal(expand_dims(arange(static_cast<int>(m)), -1), permutation), real_dtype(a.dtype()));
  return {p, factor::lower_part(left, -1) + eye(m, k, 0, a.dtype()), factor::upper_part(right)};
}

Array lu_solve(const LuFactor& factored, const Operand& b) {
  const Call call("lu_solve", b.where);
  const System s = system_of(factored.lu, b, true);
  const Array permutation = factor::pivots_to_permutation(factored.pivots, rows_of(s.a));
  const Array in_order =
      placed_as(take_along_axis(s.b, broadcast_to(expand_dims(permutation, -1), s.b.shape()), -2), s.b);
  const Array y = factor::triangular_solve(s.a, in_order, {.lower = true, .unit_diagonal = true});
  return as_given(s, factor::triangular_solve(s.a, y, {}));
}

Array cholesky(const Operand& a) {
  const Call call("cholesky", a.where);
  return factor::cholesky(matrices(a, true), {});
}

Array cholesky_solve(const Operand& l, const Operand& b) {
  const Call call("cholesky_solve", l.where);
  const System s = system_of(l, b, true);
  const Array y = factor::triangular_solve(s.a, s.b, {.lower = true});
  return as_given(s, factor::triangular_solve(
                         s.a, y, {.lower = true, .transpose = true, .conjugate = is_complex(s.a.dtype())}));
}

Array triangular_solve(const Operand& a, const Operand& b, TriangularOptions options) {
  const Call call("triangular_solve", a.where);
  const System s = system_of(a, b, true);
  const factor::Triangle triangle{options.lower, options.transpose, false, options.unit_diagonal};
  return as_given(s, factor::triangular_solve(s.a, s.b, triangle));
}

Array inv(const Operand& operand) {
  const Call call("inv", operand.where);
  const Array a = matrices(operand, true);
  return factor::solve(a, identity_like(a), {});
}

// The sign of a permutation is that of its exchanges; the product of the diagonal is computed as signs and
// logarithms.
SlogDet slogdet(const Operand& operand) {
  const Call call("slogdet", operand.where);
  const Array a = matrices(operand, true);
  const auto [packed, pivots] = factor::lu_factor(a, {});
  const std::int64_t n = rows_of(a);
  const Array on_diagonal = sum(packed * eye(n, a.dtype()), -1);
  const Array magnitude = abs(on_diagonal);
  const Array exchanged = astype(not_equal(pivots, arange(static_cast<int>(n))), real_dtype(a.dtype()));
  const Array parity = prod(1.0 - 2.0 * exchanged, -1);
  const Array directions = where(magnitude == 0, zeros_like(on_diagonal),
                                 on_diagonal / where(magnitude == 0, ones_like(magnitude), magnitude));
  return {astype(parity, a.dtype()) * prod(directions, -1), sum(log(magnitude), -1)};
}

Array det(const Operand& operand) {
  const Call call("det", operand.where);
  const Array a = matrices(operand, true);
  const auto [packed, pivots] = factor::lu_factor(a, {});
  const std::int64_t n = rows_of(a);
  const Array exchanged = astype(not_equal(pivots, arange(static_cast<int>(n))), a.dtype());
  return prod((1.0 - 2.0 * exchanged) * sum(packed * eye(n, a.dtype()), -1), -1);
}

Array matrix_power(const Operand& operand, int n) {
  const Call call("matrix_power", operand.where);
  Array base = matrices(operand, true);
  if (n == 0) return identity_like(base);
  if (n < 0) base = inv(base);
  auto rest = static_cast<unsigned>(std::abs(static_cast<long>(n)));
  Array result;
  for (; rest != 0; rest >>= 1) {
    if (rest & 1) result = result.node() ? matmul(result, base) : base;
    if (rest > 1) base = matmul(base, base);
  }
  return result;
}

namespace {

// x squared `times` times; `times` has one number per matrix. A step that no matrix needs does nothing.
Array squared_as_often(const Array& x, const Array& times, int most) {
  const auto step = [&](const std::vector<Array>& carried, const std::vector<Array>&) {
    const Array &value = carried[0], &done = carried[1];
    const auto square = [&] { return std::vector{where(times > done, matmul(value, value), value)}; };
    const auto keep = [&] { return std::vector{value}; };
    return std::vector{record_branch(any(times > done), square, keep)[0], done + 1};
  };
  return record_counted_loop({"expm"}, step, {x, zeros_like(max(times))}, {}, most)[0];
}

}  // namespace

// exp(a) = (r(a / 2^s))^(2^s) with the [13/13] Pade approximant r (Higham 2005, table 2.3). The number of
// squarings is a value of the graph.
Array expm(const Operand& operand) {
  const Call call("expm", operand.where);
  const Array a = matrices(operand, true);
  if (rows_of(a) == 0) return a;
  static constexpr double b[] = {64764752532480000.,
                                 32382376266240000.,
                                 7771770303897600.,
                                 1187353796428800.,
                                 129060195264000.,
                                 10559470521600.,
                                 670442572800.,
                                 33522128640.,
                                 1323241920.,
                                 40840800.,
                                 960960.,
                                 16380.,
                                 182.,
                                 1.};
  const double theta = real_dtype(a.dtype()) == float32 ? 3.925724783138660 : 5.371920351148152;
  constexpr int most_squarings = 24;
  const Array norm1 = max(sum(abs(a), -2), -1);
  const Array squarings = clip(ceil(log2(norm1 / theta)), 0.0, static_cast<double>(most_squarings));
  const Array per_matrix =
      expand_dims(expand_dims(where(isfinite(squarings), squarings, zeros_like(squarings)), -1), -1);
  const Array scaled = a * astype(exp2(-per_matrix), a.dtype()), identity = identity_like(a);
  const Array a2 = matmul(scaled, scaled), a4 = matmul(a2, a2), a6 = matmul(a4, a2);
  const auto sum_of = [&](int i6, int i4, int i2) { return a6 * b[i6] + a4 * b[i4] + a2 * b[i2]; };
  const Array odd = matmul(scaled, matmul(a6, sum_of(13, 11, 9)) + sum_of(7, 5, 3) + identity * b[1]);
  const Array even = matmul(a6, sum_of(12, 10, 8)) + sum_of(6, 4, 2) + identity * b[0];
  return squared_as_often(factor::solve(even - odd, even + odd, {}), per_matrix, most_squarings);
}

}  // namespace tessera::linalg
