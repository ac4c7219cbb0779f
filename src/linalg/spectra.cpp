// qr, svd, eigh and related functions.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include <tessera/ops/reproducible.hpp>

#include "linalg/operands.hpp"
#include "ops/in_float32.hpp"

namespace tessera::linalg {
namespace {

using factor::adjoint;

Array on_columns(const Array& values, Dtype dtype) { return astype(expand_dims(values, -2), dtype); }

// 1 / s, and 0 for values that count as zero: at most `relative` times the largest.
Array inverse_or_zero(const Array& s, double relative) {
  if (s.shape().back() == 0) return s;
  const Array threshold = max(s, -1, true) * relative, counts = s > threshold;
  return where(counts, reciprocal(where(counts, s, ones_like(s))), zeros_like(s));
}

double rank_tolerance(const Array& a) {
  return epsilon(a.dtype()) * static_cast<double>(std::max(rows_of(a), columns_of(a)));
}

// Gathers each matrix onto the ranks that hold parts of it.
Array with_whole_matrices(const Array& r) {
  auto dims = r.sharding().dim_axes(r.ndim());
  auto &rows = dims[dims.size() - 2], &columns = dims.back();
  if (rows.empty() && columns.empty()) return r;
  rows.clear(), columns.clear();
  return with_sharding_constraint(r, Sharding::from_dim_axes(r.sharding().mesh(), dims));
}

// a = u diag(s) vh. A ReproducibleScope refuses the SVD of a split matrix: it is computed from the triangle
// of a = q r, or of a^H = q r, which is replicated.
factor::SvdParts reduced_svd(const Array& a) {
  if (!is_reproducible()) return factor::svd(a, false);
  const bool is_wide = rows_of(a) < columns_of(a);
  const auto [q, r] = factor::qr(is_wide ? adjoint(a) : a, false);
  const auto [u, s, vh] = factor::svd(with_whole_matrices(r), false);
  if (is_wide) return {adjoint(vh), s, adjoint(matmul(q, u))};
  return {matmul(q, u), s, vh};
}

}  // namespace

QR qr(const Operand& a, QrOptions options) {
  const Call call("qr", a.where);
  auto [q, r] = factor::qr(matrices(a, false), options.complete);
  return {q, r};
}

SVD svd(const Operand& a, SvdOptions options) {
  const Call call("svd", a.where);
  auto [u, s, vh] = factor::svd(matrices(a, false), options.full_matrices);
  return {u, s, vh};
}

Array svdvals(const Operand& a) {
  const Call call("svdvals", a.where);
  return factor::svdvals(matrices(a, false));
}

Eigh eigh(const Operand& a) {
  const Call call("eigh", a.where);
  auto [w, v] = factor::eigh(matrices(a, true));
  return {w, v};
}

Array eigvalsh(const Operand& a) {
  const Call call("eigvalsh", a.where);
  return factor::eigvalsh(matrices(a, true));
}

// x = V S^+ U^H b.
Array lstsq(const Operand& a, const Operand& b) {
  const Call call("lstsq", a.where);
  const System s = system_of(a, b, false);
  const auto [u, values, vh] = reduced_svd(s.a);
  const Array weights = astype(expand_dims(inverse_or_zero(values, rank_tolerance(s.a)), -1), s.a.dtype());
  const Array x = matmul(adjoint(vh), weights * matmul(adjoint(u), s.b));
  // NaN for columns with infinities, whose results would otherwise depend on the signs of u's columns.
  const Array has_numbers = all(isfinite(s.b), Axes{-2}, true);
  return as_given(s, where(has_numbers, x, full_like(x, std::numeric_limits<double>::quiet_NaN())));
}

Array pinv(const Operand& operand) {
  const Call call("pinv", operand.where);
  const Array a = matrices(operand, false);
  const auto [u, s, vh] = reduced_svd(a);
  constexpr double numpys = 1e-15;
  const double relative = std::max(numpys, rank_tolerance(a));
  return matmul(adjoint(vh) * on_columns(inverse_or_zero(s, relative), a.dtype()), adjoint(u));
}

Array matrix_rank(const Operand& operand) {
  const Call call("matrix_rank", operand.where);
  check_usable(operand.array);
  if (operand.array.ndim() < 2) return astype(any(operand.array != 0), int32);
  const Array a = matrices(operand, false);
  const Array s = factor::svdvals(a);
  if (s.shape().back() == 0) return astype(sum(s, -1), int32);
  return astype(sum(astype(s > max(s, -1, true) * rank_tolerance(a), int32), -1), int32);
}

Array norm(const Operand& operand) {
  const Call call("norm", operand.where);
  check_usable(operand.array);
  if (is_half(operand.array.dtype()))
    return in_float32(operand.array, [&](const Array& wide) { return norm(wide); });
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()));
  return sqrt(sum(is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : square(x)));
}

namespace {

Array restore_dims(Array result, std::vector<int> dims, bool keepdims) {
  if (!keepdims) return result;
  std::sort(dims.begin(), dims.end());
  for (const int d : dims) result = expand_dims(result, d);
  return result;
}

[[noreturn]] void throw_unknown_order(const char* kind, const std::string& ord, const char* known) {
  throw ArgumentError(call_text() + ": " + ord + " is no order of a " + kind + " norm; use " + known);
}

Array vector_norm(const Array& x, double ord, int dim) {
  const Array magnitude = abs(x);
  if (ord == std::numeric_limits<double>::infinity()) return max(magnitude, dim);
  if (ord == -std::numeric_limits<double>::infinity()) return min(magnitude, dim);
  if (ord == 0) return astype(sum(astype(x != 0, int32), dim), real_dtype(x.dtype()));
  if (ord == 1) return sum(magnitude, dim);
  if (ord == 2) return sqrt(sum(is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : square(x), dim));
  return power(sum(power(magnitude, ord), dim), 1.0 / ord);
}

Array matrix_norm(const Array& x, double ord) {  // over the last two dims
  const Array magnitude = abs(x);
  if (ord == 1) return max(sum(magnitude, -2), -1);
  if (ord == -1) return min(sum(magnitude, -2), -1);
  if (ord == std::numeric_limits<double>::infinity()) return max(sum(magnitude, -1), -1);
  if (ord == -std::numeric_limits<double>::infinity()) return min(sum(magnitude, -1), -1);
  if (ord == 2) return max(factor::svdvals(x), -1);
  if (ord == -2) return min(factor::svdvals(x), -1);
  char text[32];
  std::snprintf(text, sizeof text, "%g", ord);
  throw_unknown_order("matrix", text, "1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\"");
}

std::vector<int> norm_dims(const Array& x, const Axes& axes, std::size_t matrix) {
  std::vector<int> dims;
  for (const int axis : axes.values) dims.push_back(checked_dim(axis, x.ndim()));
  if (dims.empty())
    for (int d = 0; d < x.ndim(); ++d) dims.push_back(d);
  const bool is_twice = dims.size() == 2 && dims[0] == dims[1];
  if (dims.size() > 2 || dims.size() < (matrix == 2 ? 2 : 1) || is_twice)
    throw ArgumentError(
        call_text() + ": " +
        (matrix == 2 ? "\"fro\" and \"nuc\" are matrix norms and need two different axes"
                     : "an order needs one axis (a vector norm) or two different ones (a matrix norm)") +
        ", got " + (is_twice ? "axis " + std::to_string(dims[0]) + " twice" : std::to_string(dims.size())) +
        " for shape " + to_string(x.shape()) + ". Name them");
  return dims;
}

Array matrix_axes_last(const Array& x, const std::vector<int>& dims) {
  std::vector<int> permutation;
  for (int d = 0; d < x.ndim(); ++d)
    if (d != dims[0] && d != dims[1]) permutation.push_back(d);
  permutation.insert(permutation.end(), dims.begin(), dims.end());
  return transpose(x, permutation);
}

}  // namespace

Array norm(const Operand& operand, double ord, Axes axes, bool keepdims) {
  const Call call("norm", operand.where);
  check_usable(operand.array);
  if (is_half(operand.array.dtype()))
    return in_float32(operand.array, [&](const Array& wide) { return norm(wide, ord, axes, keepdims); });
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()));
  const auto dims = norm_dims(x, axes, 1);
  if (dims.size() == 1) return restore_dims(vector_norm(x, ord, dims[0]), dims, keepdims);
  return restore_dims(matrix_norm(matrix_axes_last(x, dims), ord), dims, keepdims);
}

Array norm(const Operand& operand, const std::string& ord, Axes axes, bool keepdims) {
  const Call call("norm", operand.where);
  check_usable(operand.array);
  if (is_half(operand.array.dtype()))
    return in_float32(operand.array, [&](const Array& wide) { return norm(wide, ord, axes, keepdims); });
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()));
  const auto dims = norm_dims(x, axes, 2);
  const Array m = matrix_axes_last(x, dims);
  if (ord == "fro")
    return restore_dims(
        sqrt(sum(is_complex(m.dtype()) ? square(real(m)) + square(imag(m)) : square(m), Axes{-2, -1})), dims,
        keepdims);
  if (ord == "nuc") return restore_dims(sum(factor::svdvals(m), -1), dims, keepdims);
  throw_unknown_order("matrix", '"' + ord + '"', "\"fro\", \"nuc\" or a number");
}

Array cond(const Operand& a) {
  const Call call("cond", a.where);
  return cond(a, 2.0);
}

Array cond(const Operand& operand, double ord) {
  const Call call("cond", operand.where);
  const Array a = matrices(operand, std::abs(ord) != 2);
  if (std::abs(ord) == 2) {
    const Array s = factor::svdvals(a);
    return ord > 0 ? max(s, -1) / min(s, -1) : min(s, -1) / max(s, -1);
  }
  return matrix_norm(a, ord) * matrix_norm(inv(a), ord);
}

}  // namespace tessera::linalg
