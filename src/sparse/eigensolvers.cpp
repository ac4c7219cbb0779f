// lobpcg and lanczos: extreme eigenvalues of Hermitian functions.
#include <limits>

#include <tessera/control.hpp>
#include <tessera/linalg.hpp>
#include <tessera/ops/arrange.hpp>

#include "base/call.hpp"
#include "linalg/operands.hpp"
#include "ops/build.hpp"
#include "sparse/solver.hpp"

namespace tessera::sparse {
namespace {

Array adjoint(const Array& x) { return is_complex(x.dtype()) ? conj(transpose(x)) : transpose(x); }
Array norms_of_columns(const Array& x) {
  return sqrt(sum(is_complex(x.dtype()) ? real(conj(x) * x) : x * x, 0));
}

// The k requested of ascending eigenvalues, the extreme one first.
struct Wanted {
  Array w, vectors;
};
Wanted wanted_of(const linalg::Eigh& all, std::int64_t k, bool largest) {
  if (!largest) return {all.w(slice(0, k)), all.v(slice(), slice(0, k))};
  const auto n = all.w.shape()[0];
  return {flip(all.w(slice(n - k, n)), 0), flip(all.v(slice(), slice(n - k, n)), 1)};
}

struct Search {
  Array x, image, direction, w, residual, count;
};
// The best k vectors (Rayleigh-Ritz) in the space spanned by x, its residuals and the last directions,
// through an orthonormal basis.
Search best_of(const LinearMap& a, const Array& space, const Array& x, const Array& count, bool largest) {
  const Array basis = linalg::qr(space).q;
  const Array image = a(basis);
  const Array projected = tessera::matmul(adjoint(basis), image);
  const auto [w, mix] = wanted_of(linalg::eigh((projected + adjoint(projected)) / 2), x.shape()[1], largest);
  Search next;
  next.x = tessera::matmul(basis, mix);
  next.image = tessera::matmul(image, mix);
  next.direction = next.x - tessera::matmul(x, tessera::matmul(adjoint(x), next.x));
  next.w = w;
  next.residual = norms_of_columns(next.image - next.x * w);
  next.count = count;
  return next;
}

}  // namespace

Eigenpairs lobpcg(const LinearMap& a, const Operand& x0, EigenOptions options) {
  const Call call("lobpcg", x0.where);
  check_system(a, x0.array);
  const auto& shape = x0.array.shape();
  if (shape.ndim() != 2 || shape[1] < 1 || 3 * shape[1] > shape[0])
    throw ShapeError(call_text() + ": x0 has the shape " + to_string(shape) +
                     "; it must be (n, k) with 3 k <= n. Of a small matrix: linalg::eigh");
  const auto precondition = [&](const Array& r) {
    return options.preconditioner ? (*options.preconditioner)(r) : r;
  };
  const Array none = zeros({}, int32);
  const Search start = best_of(a, x0.array, zeros_like(x0.array), none, options.largest);
  const auto step = [&](const Search& at) {
    const Array r = precondition(at.image - at.x * at.w);
    // Normalizes columns, so that those near convergence are not lost to rounding.
    const auto unit = [](const Array& v) {
      const Array length = norms_of_columns(v);
      return v * where(length > 0, 1 / length, zeros_like(length));
    };
    return best_of(a, concatenate({at.x, unit(r), unit(at.direction)}, 1), at.x, at.count + 1,
                   options.largest);
  };
  const auto not_done = [&](const Search& at) {
    return any(at.residual > options.tol * max(abs(at.w))) & (at.count < options.maxiter);
  };
  Search first = start;
  first.direction = zeros_like(start.x);
  const Search end = while_loop(not_done, step, first);
  return {end.w, end.x, end.count, end.residual};
}

namespace {

// Computes row j + 1 from row j: a v_j, orthogonalized twice against the previous rows.
struct Tridiagonal {
  Array rows, diagonal, beside;  // (steps + 1, n); (steps), (steps)
};
Tridiagonal lanczos_step(const LinearMap& a, const Array& j, const Tridiagonal& at) {
  const auto steps = at.diagonal.shape()[0];
  const Array numbers = arange(steps + 1), own = cast_to(numbers == j, at.rows.dtype());
  const Array v = tessera::matmul(own, at.rows);
  Array w = a(v);
  const Array alpha = real_inner(v, w);
  for (int twice = 0; twice < 2; ++twice)
    w = w - tessera::matmul(tessera::matmul(is_complex(w.dtype()) ? conj(at.rows) : at.rows, w), at.rows);
  const Array norm = sqrt(real_inner(w, w));
  // w is rounding errors alone once the rows span all that products with a can reach.
  const Array is_left = norm > 100 * linalg::epsilon(at.rows.dtype()) * abs(alpha);
  const Array scale = where(is_left, 1 / norm, zeros_like(norm));
  const Array here = arange(steps) == j;
  return {at.rows + where(expand_dims(numbers == j + 1, 1), expand_dims(scale * w, 0), zeros_like(w)),
          where(here, alpha, at.diagonal), where(here, where(is_left, norm, zeros_like(norm)), at.beside)};
}

}  // namespace

Eigenpairs lanczos(const LinearMap& a, const Operand& v0, int k, int steps, EigenOptions options) {
  const Call call("lanczos", v0.where);
  check_system(a, v0.array);
  if (v0.array.ndim() != 1)
    throw ShapeError(call_text() + ": v0 has the shape " + to_string(v0.array.shape()) +
                     "; it must be a vector");
  if (k < 1 || k > steps || steps > v0.array.size())
    throw ArgumentError(call_text() + ": " + std::to_string(k) + " eigenvalues from " +
                        std::to_string(steps) + " steps of vectors of " + std::to_string(v0.array.size()) +
                        "; there must be 0 < k <= steps <= n");
  const Array& v = v0.array;
  const Array length = sqrt(real_inner(v, v));
  const Array numbers = arange(steps + 1);
  Tridiagonal t{where(expand_dims(numbers == 0, 1), expand_dims(v / length, 0), zeros_like(v)),
                zeros({steps}, length.dtype()), zeros({steps}, length.dtype())};
  t = fori_loop(
      0, steps, [&](const Array& j, const Tridiagonal& at) { return lanczos_step(a, j, at); }, t);
  // Empty rows have no eigenvalue: theirs is moved to the far end of the spectrum, where it is not selected.
  const Array is_used =
      concatenate({ones({1}, bool_), cumprod(cast_to(t.beside > 0, int32), 0)(slice(0, steps - 1)) > 0}, 0);
  const Array far = (2 * max(abs(t.diagonal)) + 2 * max(t.beside) + 1) * (options.largest ? -1 : 1);
  const Array main = where(is_used, t.diagonal, far);
  const Array off = where(is_used(slice(1, steps)), t.beside(slice(0, steps - 1)),
                          zeros_like(t.beside(slice(0, steps - 1))));
  const Array matrix = diag(main) + diag(off, 1) + diag(off, -1);
  const auto [found, mix] = wanted_of(linalg::eigh(matrix), k, options.largest);
  // NaN where there are fewer than k: what is left are the far ones.
  const Array used = sum(where(expand_dims(is_used, 1), mix * mix, zeros_like(mix)), 0);
  const Array w = where(used > 0.5, found, full({}, std::numeric_limits<double>::quiet_NaN(), found.dtype()));
  const Array vectors = tessera::matmul(transpose(t.rows(slice(0, steps))), cast_to(mix, v.dtype()));
  std::vector<Array> images;
  for (int i = 0; i < k; ++i) images.push_back(a(vectors(slice(), i)));
  const Array residual = norms_of_columns(stack(std::move(images), 1) - vectors * w);
  return {w, vectors, full({}, steps, int32), residual};
}

}  // namespace tessera::sparse
