// Nonsymmetric matrices, and functions based on svd and cholesky.
#include <algorithm>

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

// m_k = (1 + (m + m^-1) / 2) / 2 converges to 1, x_k = x (1 + m^-1) / 2 to the root. Scaled by the
// determinant in the first steps; converges quadratically at the end.
Array sqrtm(const Operand& a) {
  const Call call("sqrtm", a.where);
  constexpr int scaled_steps = 8, steps = 14;
  const Array given = matrices(a, true);
  const auto n = columns_of(given);
  if (n == 0) return given;
  const Array one = eye(n, given.dtype());
  Array m = given, x = given;
  for (int k = 0; k < steps; ++k) {
    if (k < scaled_steps) {  // |det|^(-1 / 2n) of x, whose square is a times m
      const auto logarithm = slogdet(m).logabsdet;
      const Array mu = exp(logarithm * (-0.5 / static_cast<double>(n)));
      const Array factor = astype(expand_dims(expand_dims(mu, -1), -1), given.dtype());
      m = m * factor * factor;
      x = x * factor;
    }
    const Array inverse = inv(m);
    x = matmul(x, one + inverse) * 0.5;
    m = (one + (m + inverse) * 0.5) * 0.5;
  }
  return x;
}

}  // namespace tessera::linalg
