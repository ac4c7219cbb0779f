// qr, svd, eigh and what follows from them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "linalg/operands.hpp"

namespace tessera::linalg {
namespace {

using factor::adjoint;

Array on_columns(const Array& values, Dtype dtype) { return astype(expand_dims(values, -2), dtype); }

// 1 / s, and 0 where s counts as zero: at most `relative` of the largest.
Array inverse_or_zero(const Array& s, double relative) {
  if (s.shape().back() == 0) return s;
  const Array threshold = max(s, -1, true) * relative, counts = s > threshold;
  return where(counts, reciprocal(where(counts, s, ones_like(s))), zeros_like(s));
}

double rank_tolerance(const Array& a) {
  return epsilon(a.dtype()) * static_cast<double>(std::max(rows_of(a), columns_of(a)));
}

}  // namespace

QR qr(const Operand& a) {
  auto [q, r] = factor::qr(matrices(a, false, "qr"), false, a.where);
  return {q, r};
}

SVD svd(const Operand& a, SvdOptions options) {
  auto [u, s, vh] = factor::svd(matrices(a, false, "svd"), options.full_matrices, a.where);
  return {u, s, vh};
}

Array svdvals(const Operand& a) { return factor::svdvals(matrices(a, false, "svdvals"), a.where); }

Eigh eigh(const Operand& a) {
  auto [w, v] = factor::eigh(matrices(a, true, "eigh"), a.where);
  return {w, v};
}

Array eigvalsh(const Operand& a) { return factor::eigvalsh(matrices(a, true, "eigvalsh"), a.where); }

// x = V S^+ U^H b.
Array lstsq(const Operand& a, const Operand& b) {
  const System s = system_of(a, b, false, "lstsq");
  const auto [u, values, vh] = factor::svd(s.a, false, a.where);
  const Array weights = astype(expand_dims(inverse_or_zero(values, rank_tolerance(s.a)), -1), s.a.dtype());
  return as_given(s, matmul(adjoint(vh), weights * matmul(adjoint(u), s.b)));
}

Array pinv(const Operand& operand) {
  const Array a = matrices(operand, false, "pinv");
  const auto [u, s, vh] = factor::svd(a, false, operand.where);
  constexpr double numpys = 1e-15;
  const double relative = std::max(numpys, rank_tolerance(a));
  return matmul(adjoint(vh) * on_columns(inverse_or_zero(s, relative), a.dtype()), adjoint(u));
}

Array matrix_rank(const Operand& operand) {
  check_usable(operand.array, "matrix_rank");
  if (operand.array.ndim() < 2) return astype(any(operand.array != 0), int32);
  const Array a = matrices(operand, false, "matrix_rank");
  const Array s = factor::svdvals(a, operand.where);
  if (s.shape().back() == 0) return astype(sum(s, -1), int32);
  return astype(sum(astype(s > max(s, -1, true) * rank_tolerance(a), int32), -1), int32);
}

Array norm(const Operand& operand) {
  check_usable(operand.array, "norm");
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()), operand.where);
  return sqrt(sum(is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : square(x)));
}

namespace {

Array restore_dims(Array result, std::vector<int> dims, bool keepdims) {
  if (!keepdims) return result;
  std::sort(dims.begin(), dims.end());
  for (const int d : dims) result = expand_dims(result, d);
  return result;
}

[[noreturn]] void throw_unknown_order(const char* kind, const std::string& ord, const char* known,
                                      std::source_location where) {
  throw ArgumentError(call_text("norm", where) + ": " + ord + " is no order of a " + kind + " norm; use " +
                      known);
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

Array matrix_norm(const Array& x, double ord, std::source_location where) {  // of the last two dims
  const Array magnitude = abs(x);
  if (ord == 1) return max(sum(magnitude, -2), -1);
  if (ord == -1) return min(sum(magnitude, -2), -1);
  if (ord == std::numeric_limits<double>::infinity()) return max(sum(magnitude, -1), -1);
  if (ord == -std::numeric_limits<double>::infinity()) return min(sum(magnitude, -1), -1);
  if (ord == 2) return max(factor::svdvals(x, where), -1);
  if (ord == -2) return min(factor::svdvals(x, where), -1);
  char text[32];
  std::snprintf(text, sizeof text, "%g", ord);
  throw_unknown_order("matrix", text, "1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\"", where);
}

std::vector<int> norm_dims(const Array& x, const Axes& axes, std::size_t matrix, std::source_location where) {
  std::vector<int> dims;
  for (const int axis : axes.values) dims.push_back(checked_dim(axis, x.ndim(), "norm", where));
  if (dims.empty())
    for (int d = 0; d < x.ndim(); ++d) dims.push_back(d);
  const bool is_twice = dims.size() == 2 && dims[0] == dims[1];
  if (dims.size() > 2 || dims.size() < (matrix == 2 ? 2 : 1) || is_twice)
    throw ArgumentError(
        call_text("norm", where) + ": " +
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
  check_usable(operand.array, "norm");
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()), operand.where);
  const auto dims = norm_dims(x, axes, 1, operand.where);
  if (dims.size() == 1) return restore_dims(vector_norm(x, ord, dims[0]), dims, keepdims);
  return restore_dims(matrix_norm(matrix_axes_last(x, dims), ord, operand.where), dims, keepdims);
}

Array norm(const Operand& operand, const std::string& ord, Axes axes, bool keepdims) {
  check_usable(operand.array, "norm");
  const Array x = cast_to(operand.array, to_inexact(operand.array.dtype()), operand.where);
  const auto dims = norm_dims(x, axes, 2, operand.where);
  const Array m = matrix_axes_last(x, dims);
  if (ord == "fro")
    return restore_dims(
        sqrt(sum(is_complex(m.dtype()) ? square(real(m)) + square(imag(m)) : square(m), Axes{-2, -1})), dims,
        keepdims);
  if (ord == "nuc") return restore_dims(sum(factor::svdvals(m, operand.where), -1), dims, keepdims);
  throw_unknown_order("matrix", '"' + ord + '"', "\"fro\", \"nuc\" or a number", operand.where);
}

Array cond(const Operand& a) { return cond(a, 2.0); }

Array cond(const Operand& operand, double ord) {
  const Array a = matrices(operand, std::abs(ord) != 2, "cond");
  if (std::abs(ord) == 2) {
    const Array s = factor::svdvals(a, operand.where);
    return ord > 0 ? max(s, -1) / min(s, -1) : min(s, -1) / max(s, -1);
  }
  return matrix_norm(a, ord, operand.where) * matrix_norm(inv(Operand(a, operand.where)), ord, operand.where);
}

}  // namespace tessera::linalg
