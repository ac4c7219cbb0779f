// Factorizations, solves and custom calls.
#include <tessera/control.hpp>
#include <tessera/linalg.hpp>
#include <tessera/ops.hpp>
#include <tessera/ops/arrange.hpp>

#include <cctype>

#include "ops/factor/functions.hpp"
#include "stablehlo/matrices/matrices.hpp"
#include "stablehlo/matrices/packed.hpp"
#include "stablehlo/rules/custom_calls.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {

char letter_of(const OpCall& s, const char* name) {
  const Attribute* config = s.find("mhlo.backend_config");
  const Attribute* value = config == nullptr ? nullptr : config->find(name);
  if (value == nullptr) return '\0';
  const auto code = integers_of(s, *value);
  return code.size() == 1 && code[0] > 0 && code[0] < 127 ? static_cast<char>(code[0]) : '\0';
}

namespace {

void want_matrices(const OpCall& s, std::size_t operands) {
  s.want_operands(operands);
  for (const auto& x : s.x)
    if (x.dtype() != s.x[0].dtype() || !is_inexact(x.dtype()) || is_half(x.dtype()))
      s.refuse("operands of " + name(x.dtype()));
  if (s.x[0].ndim() < 2) s.refuse("takes matrices");
}
void want_square(const OpCall& s) {
  if (s.x[0].shape()[static_cast<std::size_t>(s.x[0].ndim()) - 2] != s.x[0].shape().back())
    s.refuse("takes square matrices");
}

// The last result of LAPACK's calls: 0, for matrices that failed too, whose results are NaN.
Array no_info(const OpCall& s, std::size_t result) { return zeros(s.type(result).shape, int32); }

Array lower_factor(const Array& a) {
  return a.size() == 0 ? a : factor::cholesky(a, {.nan_for_failure = true});
}

Arrays potrf(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  const bool is_upper = letter_of(s, "uplo") == 'U';
  return {is_upper ? adjoint(lower_factor(adjoint(s.x[0]))) : lower_factor(s.x[0]), no_info(s, 1)};
}

Arrays getrf(OpCall& s) {
  want_matrices(s, 1);
  if (s.x[0].size() == 0) return {s.x[0], zeros(s.type(1).shape, int32), no_info(s, 2)};
  const auto factor = linalg::lu_factor(s.x[0], {.ill_conditioned = linalg::IllConditioned::accept});
  return {factor.lu, add(factor.pivots, full({}, 1)), no_info(s, 2)};
}

Arrays geqrf(OpCall& s) {
  want_matrices(s, 1);
  if (s.x[0].size() == 0) return {s.x[0], zeros(s.type(1).shape, s.x[0].dtype())};
  const Packed made = householder_qr(s.x[0]);
  note_packed(s.run, made.packed, made.taus, s.x[0]);
  return {made.packed, made.taus};
}

Arrays orgqr(OpCall& s) {
  want_matrices(s, 2);
  const auto columns = s.type().shape.empty() ? 0 : s.type().shape.back();
  if (s.x[1].ndim() != s.x[0].ndim() - 1 ||
      columns > s.x[0].shape()[static_cast<std::size_t>(s.x[0].ndim()) - 2])
    s.refuse("taus or columns of another number");
  if (const auto q = q_of_packed(s.run, s.x[0], s.x[1], columns)) return {*q};
  return {product_of_reflections(s.x[0], s.x[1], static_cast<int>(columns))};
}

Arrays ormqr(OpCall& s) {
  want_matrices(s, 3);
  const auto rows = s.x[0].shape()[static_cast<std::size_t>(s.x[0].ndim()) - 2];
  const Array q = product_of_reflections(s.x[0], s.x[1], static_cast<int>(rows));
  const char trans = letter_of(s, "trans");
  const Array op = trans == 'T' || trans == 'C' ? adjoint(q) : q;
  return {letter_of(s, "side") == 'R' ? matmul(s.x[2], op) : matmul(op, s.x[2])};
}

struct Solve {
  bool is_left = true, lower = true, transpose = false, conjugate = false, unit_diagonal = false;
};

// x of op(a) x = b, or of x op(a) = b, which is op(a)^T x^T = b^T.
Array triangular(const Array& a, const Array& b, Solve how) {
  if (b.size() == 0) return b;
  if (!how.is_left) {
    how.is_left = true, how.transpose = !how.transpose;
    return matrix_transpose(triangular(a, matrix_transpose(b), how));
  }
  const Array read = how.conjugate && is_complex(a.dtype()) ? conj(a) : a;
  return linalg::triangular_solve(
      read, b, {.lower = how.lower, .transpose = how.transpose, .unit_diagonal = how.unit_diagonal});
}

Arrays trsm(OpCall& s) {
  want_matrices(s, 2), want_square(s);
  const char trans = letter_of(s, "trans_x");
  return {triangular(s.x[0], s.x[1],
                     {letter_of(s, "side") != 'R', letter_of(s, "uplo") != 'U', trans == 'T' || trans == 'C',
                      trans == 'C', letter_of(s, "diag") == 'U'})};
}

Arrays triangular_solve_rule(OpCall& s) {
  want_matrices(s, 2), want_square(s);
  const auto kind = s.word("transpose_a");
  const bool is_adjoint = kind.find("ADJOINT") != std::string::npos;
  const bool is_transposed =
      is_adjoint || (kind.find("TRANSPOSE") != std::string::npos && kind.find("NO_") == std::string::npos);
  return {
      triangular(s.x[0], s.x[1],
                 {s.flag("left_side"), s.flag("lower"), is_transposed, is_adjoint, s.flag("unit_diagonal")})};
}

Arrays cholesky_rule(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  return {s.flag("lower") ? lower_factor(s.x[0]) : adjoint(lower_factor(adjoint(s.x[0])))};
}

Arrays syevd(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  const Array& a = s.x[0];
  if (a.size() == 0) return {a, zeros(s.type(1).shape, s.type(1).dtype), no_info(s, 2)};
  const Array read = letter_of(s, "uplo") == 'U' ? adjoint(a) : a;
  if (letter_of(s, "mode") == 'N') return {read, linalg::eigvalsh(read), no_info(s, 2)};
  const auto [w, v] = linalg::eigh(read);
  return {v, w, no_info(s, 2)};
}

Arrays gesdd(OpCall& s) {
  want_matrices(s, 1);
  const Array& a = s.x[0];
  if (s.results() != 5) s.refuse("five results are expected");
  const auto none = [&](std::size_t n) { return zeros(s.type(n).shape, s.type(n).dtype); };
  if (a.size() == 0) s.refuse("a matrix without elements");
  const char mode = letter_of(s, "mode");
  if (mode == 'N') return {a, linalg::svdvals(a), none(2), none(3), no_info(s, 4)};
  const auto [u, values, vh] = linalg::svd(a, {mode == 'A'});
  return {a, values, u, vh, no_info(s, 4)};
}

Arrays geev(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  if (s.x[0].size() == 0) s.refuse("a matrix without elements");
  const auto [w, v] = linalg::eig(s.x[0]);
  const bool is_real = !is_complex(s.x[0].dtype());
  const std::size_t first = is_real ? 2 : 1;
  if (s.results() != first + 3) s.refuse(std::to_string(first + 3) + " results are expected");
  Array left = zeros(s.type(first).shape, s.type(first).dtype);
  if (letter_of(s, "compute_left") == 'V') {
    const Array identity = broadcast_to(eye(v.shape().back(), v.dtype()), v.shape());
    left = adjoint(linalg::solve(v, identity, {.ill_conditioned = linalg::IllConditioned::accept}));
    left = divide(left, astype(sqrt(sum(square(abs(left)), {-2}, true)), left.dtype()));
  }
  Arrays results = is_real ? Arrays{real(w), imag(w)} : Arrays{w};
  results.insert(results.end(), {left, v, no_info(s, first + 2)});
  return results;
}

Arrays gees(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  if (letter_of(s, "sort") == 'S') s.refuse("a Schur form with sorted eigenvalues: take the whole one");
  if (s.x[0].size() == 0) s.refuse("a matrix without elements");
  const auto [t, z] = linalg::schur(s.x[0]);
  Arrays results{t, z};
  // Eigenvalues, which JAX does not read, and counts.
  for (std::size_t n = 2; n < s.results(); ++n) {
    const TensorType& type = s.type(n);
    if (!is_integer(type.dtype) && is_complex(type.dtype) != is_complex(t.dtype()))
      s.refuse("results of other types");
    results.push_back(zeros(type.shape, type.dtype));
  }
  return results;
}

Arrays gehrd(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  const Packed made = householder_hessenberg(s.x[0]);
  return {made.packed, made.taus, no_info(s, 2)};
}

Arrays sytrd(OpCall& s) {
  want_matrices(s, 1), want_square(s);
  if (letter_of(s, "uplo") == 'U') s.refuse("the upper triangle: use the lower one");
  const Array whole = add(tril(s.x[0]), adjoint(tril(s.x[0], -1)));
  const Packed made = householder_hessenberg(whole);
  const int ndim = made.packed.ndim();
  const auto diagonal_of = [&](int k) {
    Array moved = moveaxis(moveaxis(made.packed, ndim - 2, 0), ndim - 1, 1);
    return real(diagonal(moved, k));
  };
  return {made.packed, diagonal_of(0), diagonal_of(-1), made.taus, no_info(s, 4)};
}

Arrays geqp3(OpCall& s) {
  if (s.x.empty() || s.results() != 3) s.refuse("a matrix and three results are expected");
  const Array columns = linalg::qr_pivoted(s.x[0]).columns;
  const Array moved = take_along_axis(s.x[0], broadcast_to(expand_dims(columns, -2), s.x[0].shape()), -1);
  const Packed made = householder_qr(moved);
  note_packed(s.run, made.packed, made.taus, moved);
  return {made.packed, add(columns, full({}, 1)), made.taus};
}

// Thomas' algorithm along the rows, of a batch all at once.
Arrays gtsv(OpCall& s) {
  s.want_operands(4);
  for (const auto& x : s.x)
    if (x.dtype() != s.x[0].dtype()) s.refuse("operands of different dtypes");
  const int along = s.x[1].ndim() - 1;
  if (along < 0 || s.x[3].ndim() != along + 2) s.refuse("takes lines and a matrix");
  if (s.x[3].size() == 0) return {s.x[0], s.x[1], s.x[2], s.x[3], no_info(s, 4)};
  const auto front = [&](const Array& x) { return moveaxis(x, along, 0); };
  const auto wide = [](const Array& x) { return expand_dims(x, -1); };
  const Arrays lines{front(s.x[0]), front(s.x[1]), front(s.x[2]), front(s.x[3])};
  const auto row = [](const Array& x) { return zeros_like(index(x, {IndexPart(0)})); };
  const auto down = scan(
      [&](const Arrays& carry, const Arrays& at) {
        const Array pivot = subtract(at[1], multiply(at[0], carry[0]));
        const Arrays next{divide(at[2], pivot),
                          divide(subtract(at[3], multiply(wide(at[0]), carry[1])), wide(pivot))};
        return std::pair{next, next};
      },
      Arrays{row(lines[1]), row(lines[3])}, lines);
  const Arrays reversed{flip(down.second[0], {0}), flip(down.second[1], {0})};
  const auto up = scan(
      [&](const Arrays& carry, const Arrays& at) {
        const Arrays next{subtract(at[1], multiply(wide(at[0]), carry[0]))};
        return std::pair{next, next};
      },
      Arrays{row(lines[3])}, reversed);
  return {s.x[0], s.x[1], s.x[2], moveaxis(flip(up.second[0], {0}), 0, along), no_info(s, 4)};
}

}  // namespace

// lapack_sgetrf_ffi, lapack_zheevd_ffi, blas_strsm
Rule lapack_rule(std::string_view call) {
  for (const std::string_view start : {"lapack_", "blas_"})
    if (call.starts_with(start)) call.remove_prefix(start.size());
  if (call.ends_with("_ffi")) call.remove_suffix(4);
  if (call.empty() || std::string_view("sdcz").find(call[0]) == std::string_view::npos) return nullptr;
  call.remove_prefix(1);
  static const Rules known{{"getrf", getrf}, {"geqrf", geqrf}, {"orgqr", orgqr}, {"ungqr", orgqr},
                           {"potrf", potrf}, {"trsm", trsm},   {"syevd", syevd}, {"heevd", syevd},
                           {"gesdd", gesdd}, {"gesvd", gesdd}, {"geev", geev},   {"gees", gees},
                           {"gehrd", gehrd}, {"sytrd", sytrd}, {"hetrd", sytrd}, {"geqp3", geqp3},
                           {"gtsv", gtsv},   {"ormqr", ormqr}, {"unmqr", ormqr}};
  const auto found = known.find(call);
  return found == known.end() ? nullptr : found->second;
}

void add_matrices(Rules& rules) {
  rules["stablehlo.cholesky"] = cholesky_rule;
  rules["stablehlo.triangular_solve"] = triangular_solve_rule;
  rules["stablehlo.custom_call"] = custom_call;
}

}  // namespace tessera::stablehlo
