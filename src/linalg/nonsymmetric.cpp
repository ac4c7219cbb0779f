// Nonsymmetric matrices, and functions based on svd and cholesky.
#include <tessera/grad.hpp>

#include <algorithm>

#include "control/control_flow.hpp"
#include "linalg/operands.hpp"
#include "ops/spectral/spectral.hpp"

namespace tessera::linalg {
namespace {

using factor::adjoint;

Dtype complex_of(Dtype dtype) { return dtype == float32 || dtype == complex64 ? complex64 : complex128; }
Array as_complex(const Array& a) { return cast_to(a, complex_of(a.dtype())); }

}  // namespace

Eig eig(const Operand& a) {
  const Call call("eig", a.where);
  auto [w, v] = factor::eig(as_complex(matrices(a, true)));
  return {w, v};
}
Array eigvals(const Operand& a) {
  const Call call("eigvals", a.where);
  return factor::eigvals(as_complex(matrices(a, true)));
}

Schur schur(const Operand& a) {
  const Call call("schur", a.where);
  auto [t, z] = factor::schur(matrices(a, true));
  return {t, z};
}

// b = l l^H transforms a v = b v w into (l^-1 a l^-H) (l^H v) = (l^H v) w.
Eigh eigh(const Operand& a, const Operand& b) {
  const Call call("eigh", a.where);
  const System s = system_of(a, b, true);
  if (s.vectors || rows_of(s.b) != columns_of(s.b))
    throw ShapeError(call_text() + ": a and b have the shapes " + to_string(a.array.shape()) + " and " +
                     to_string(b.array.shape()) + "; both must be square matrices of one size");
  const Array l = cholesky(s.b);
  const auto lower = factor::lower_part(s.a);
  const Array whole = lower + adjoint(factor::lower_part(s.a, -1));
  const Array half = triangular_solve(l, whole, {.lower = true});
  const Array inner = adjoint(triangular_solve(l, adjoint(half), {.lower = true}));
  const auto [w, y] = eigh(inner);
  return {w, triangular_solve(adjoint(l), y)};
}

Polar polar(const Operand& a) {
  const Call call("polar", a.where);
  const Array x = matrices(a, false);
  if (rows_of(x) < columns_of(x))
    throw ShapeError(call_text() + ": the matrix has the shape " + to_string(a.array.shape()) +
                     "; it must have as many rows as columns, or more. Take the transposed one");
  const auto [u, s, vh] = svd(x, {.full_matrices = false});
  const Array scaled = vh * astype(expand_dims(s, -1), vh.dtype());
  return {matmul(u, vh), matmul(adjoint(vh), scaled)};
}

PivotedQR qr_pivoted(const Operand& a) {
  const Call call("qr_pivoted", a.where);
  const Array x = matrices(a, false);
  const Array columns = factor::pivoted_columns(x);
  const Array ordered = take_along_axis(x, expand_dims(columns, -2), -1);
  const auto [q, r] = qr(ordered);
  return {q, r, columns};
}

// m_k = (1 + (m + m^-1) / 2) / 2 converges to 1, x_k = x (1 + m^-1) / 2 to the root. Each step is scaled so
// that m and its inverse have equal norms. The last one begins within sqrt(precision) of 1: it squares the
// distance.
Array sqrtm(const Operand& a) {
  const Call call("sqrtm", a.where);
  constexpr int most_steps = 20;
  const Array given = matrices(a, true);
  const auto n = columns_of(given);
  if (n == 0) return given;
  const Array one = eye(n, given.dtype());
  const double near = real_dtype(given.dtype()) == float32 ? 3e-4 : 1e-8;
  const auto norm = [](const Array& x) { return sqrt(sum(square(abs(x)), {-2, -1}, true)); };
  const auto step = [&](const std::vector<Array>& carried, const std::vector<Array>&) {
    const Array &m = carried[0], &x = carried[1], &is_done = carried[2];
    const auto improve = [&] {
      const Array inverse = inv(m);
      const Array mu = astype(stop_gradient(sqrt(norm(inverse) / norm(m))), given.dtype());
      const Array scaled = m * mu, inverted = inverse / mu;
      return std::vector{(one + (scaled + inverted) * 0.5) * 0.5, matmul(x, one + inverted) * sqrt(mu) * 0.5,
                         max(abs(m - one)) < near};
    };
    return record_branch(logical_not(is_done), improve, [&] { return carried; });
  };
  return record_counted_loop({"sqrtm"}, step, {given, given, zeros({}, bool_)}, {}, most_steps)[1];
}

}  // namespace tessera::linalg
