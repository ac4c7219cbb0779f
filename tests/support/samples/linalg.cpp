// Linear algebra.
#include <tessera/linalg.hpp>
#include <tessera/ops/numpy.hpp>
#include <tessera/ops/products.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

namespace {

// Well conditioned, and as symmetric as the op reads it.
Array regular(const Array& x) { return x + 4 * astype(eye(x.shape()[x.shape().size() - 1]), x.dtype()); }
Array hermitian(const Array& x) { return x + conj(swapaxes(x, -1, -2)); }
Array positive(const Array& x) {
  return matmul(x, conj(swapaxes(x, -1, -2))) + astype(eye(x.shape()[x.shape().size() - 1]), x.dtype());
}

// Functions made of the factorizations.
void linalg_functions(Table& t) {
  using namespace linalg;
  t.add("pinv_polar", {{{5, 3}, -1, 1}}, [](In x) -> Out {
    const auto [u, p] = polar(x[0]);
    return {pinv(x[0]), u, p};
  });
  t.add("sqrtm", {{{4, 4}, -1, 1}}, [](In x) -> Out { return {sqrtm(regular(x[0]))}; });
  t.add("norms", {{{4, 3}, -1, 1}, {{4, 4}, -1, 1}}, [](In x) -> Out {
    return {norm(x[0], 3, 0),  norm(x[0], 1, {0, 1}), norm(x[0], "fro"),
            norm(x[0], "nuc"), norm(x[0], 2),         cond(regular(x[1]))};
  });
  t.add("tensorsolve", {{{2, 3, 6}, -1, 1}, {{2, 3}, -1, 1}}, [](In x) -> Out {
    return {tensorsolve(x[0] + 4 * reshape(astype(eye(6), float64), {2, 3, 6}), x[1])};
  });
  t.add("toeplitz_block_diag", {{{5}}, {{3}}, {{2, 3}}}, [](In x) -> Out {
    return {toeplitz(x[0]), toeplitz(x[0], x[1]), block_diag({x[2], expand_dims(x[1], 0), x[2]})};
  });
  t.add("toeplitz_complex", {{{4}, -1, 1, complex128}}, [](In x) -> Out { return {toeplitz(x[0])}; });
  t.add("multi_dot", {{{5, 3}}, {{3, 4}}, {{4, 2}}}, [](In x) -> Out {
    return {multi_dot({x[0], x[1], x[2]})};
  });
  t.add("generalized_eigh", {{{4, 4}, -1, 1}, {{4, 4}, -1, 1}}, [](In x) -> Out {
    const auto [w, v] = eigh(hermitian(x[0]), positive(x[1]));
    return {w, abs(v)};
  });
  t.add(
      "eigvals_complex", {{{4, 4}, -1, 1, complex128}}, [](In x) -> Out { return {eigvals(x[0])}; },
      Smooth::once);
}

// Results that are not unique, or not continuous: no finite differences. Ranks that hold the same matrix find
// the same.
void linalg_values(Table& t) {
  using namespace linalg;
  t.add_values("eig_schur", {{{5, 5}, -1, 1}}, [](In x) -> Out {
    const auto [w, v] = eig(x[0]);
    const auto [s, z] = schur(x[0]);
    return {w, v, s, z, eigvals(x[0])};
  });
  t.add_values("qr_pivoted_complete", {{{5, 3}, -1, 1}}, [](In x) -> Out {
    const auto [q, r, columns] = qr_pivoted(x[0]);
    const auto [whole_q, whole_r] = qr(x[0], {.complete = true});
    return {q, r, columns, whole_q, whole_r};
  });
  t.add_values("rank_rcond", {{{4, 4}, -1, 1}}, [](In x) -> Out {
    return {matrix_rank(x[0]), rcond(regular(x[0])), slogdet(regular(x[0])).sign};
  });
}

}  // namespace

void linalg_samples(Table& t) {
  using namespace linalg;
  for (const Dtype dtype : {float64, complex128}) {
    const std::string suffix = is_complex(dtype) ? "_complex" : "";
    const auto of = [dtype](Shape shape) { return OperandSample{std::move(shape), -1, 1, dtype}; };
    t.add("solve" + suffix, {of({5, 5}), of({5, 2})},
          [](In x) -> Out { return {solve(regular(x[0]), x[1])}; });
    t.add("lu" + suffix, {of({4, 4})}, [](In x) -> Out {
      const auto [p, l, u] = lu(regular(x[0]));
      return {l, u};
    });
    t.add("lu_solve" + suffix, {of({4, 4}), of({4, 2})},
          [](In x) -> Out { return {lu_solve(lu_factor(regular(x[0])), x[1])}; });
    t.add("cholesky" + suffix, {of({4, 4})}, [](In x) -> Out { return {cholesky(positive(x[0]))}; });
    t.add("cholesky_solve" + suffix, {of({4, 4}), of({4, 2})},
          [](In x) -> Out { return {cholesky_solve(cholesky(positive(x[0])), x[1])}; });
    t.add("triangular_solve" + suffix, {of({4, 4}), of({4, 2})}, [](In x) -> Out {
      return {triangular_solve(regular(x[0]), x[1]),
              triangular_solve(regular(x[0]), x[1], {.lower = true, .transpose = true}),
              triangular_solve(x[0], x[1], {.lower = true, .unit_diagonal = true})};
    });
    t.add("qr" + suffix, {of({5, 3})}, [](In x) -> Out {
      const auto [q, r] = qr(x[0]);
      return {q, r};
    });
    // The phases of singular and eigenvectors are the algorithm's choice: only what does not depend on them
    // is differentiated.
    t.add("svd" + suffix, {of({4, 3})}, [](In x) -> Out {
      const auto [u, s, vh] = svd(x[0], {.full_matrices = false});
      return {s, abs(u), real(matmul(u * s, vh))};
    });
    t.add("eigh" + suffix, {of({4, 4})}, [](In x) -> Out {
      const auto [w, v] = eigh(hermitian(x[0]));
      return {w, abs(v)};
    });
    t.add("eigvalsh_svdvals" + suffix, {of({4, 4}), of({3, 4})}, [](In x) -> Out {
      return {eigvalsh(hermitian(x[0])), svdvals(x[1])};
    });
    t.add("inv_det" + suffix, {of({2, 3, 3})}, [](In x) -> Out {
      return {inv(regular(x[0])), det(regular(x[0]))};
    });
  }
  t.add("slogdet_norm_lstsq", {{{5, 5}}, {{7, 3}}, {{7}}}, [](In x) -> Out {
    return {slogdet(regular(x[0])).logabsdet, norm(x[0]), lstsq(x[1], x[2]), matrix_power(x[0], 3),
            expm(x[0])};
  });
  linalg_functions(t);
  linalg_values(t);
}

}  // namespace tessera::test
