// Random vectors with a covariance, and random orthogonal matrices.
#include <tessera/linalg.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

// f with f f^T = cov.
Array factor_of(const Array& cov, CovarianceFactor method, Where where) {
  if (method == CovarianceFactor::cholesky) return linalg::cholesky(Operand(cov, where));
  const auto scaled = [&](const Array& vectors, const Array& variances) {
    return multiply(Operand(vectors, where),
                    Operand(expand_dims(Operand(sqrt(Operand(variances, where)), where), -2), where));
  };
  if (method == CovarianceFactor::eigh) {
    const auto [w, v] = linalg::eigh(Operand(cov, where));
    return scaled(v, w);
  }
  const auto [u, s, vh] = linalg::svd(Operand(cov, where));
  return scaled(u, s);
}

}  // namespace

Array multivariate_normal(const Key& key, const Array& mean, const Array& cov, DrawShape shape,
                          std::optional<Dtype> dtype, CovarianceFactor method, Where where) {
  const char* call = "multivariate_normal";
  check_key(key, call, where);
  check_usable(mean, call);
  check_usable(cov, call);
  const auto inexact = [](const Array& x) { return is_inexact(x.dtype()) ? x.dtype() : float32; };
  const Dtype common = promote(WeakDtype{inexact(mean), mean.is_weakly_typed()},
                               WeakDtype{inexact(cov), cov.is_weakly_typed()})
                           .dtype;
  check_floating(common, call, where);
  const Dtype result = dtype.value_or(common);
  check_floating(result, call, where);
  if (mean.ndim() < 1)
    throw ShapeError(call_text(call, where) + ": the mean is a scalar; it must be a vector (..., n)");
  const auto n = mean.shape().back();
  const auto& of_cov = cov.shape();
  if (of_cov.ndim() < 2 || of_cov.back() != n || of_cov[of_cov.size() - 2] != n)
    throw ShapeError(call_text(call, where) + ": the mean has " + std::to_string(n) +
                     " components, the covariance the shape " + to_string(of_cov) + "; it must be (..., " +
                     std::to_string(n) + ", " + std::to_string(n) + ")");
  const Shape batch = broadcast_shapes(rng::leading_dims(mean.shape()),
                                       rng::leading_dims(rng::leading_dims(of_cov)), call, where);
  const Shape outer = shape.shape ? *shape.shape : batch;
  if (!(broadcast_shapes(outer, batch, call, where) == outer))
    throw ShapeError(call_text(call, where) + ": mean and covariance have the leading dimensions " +
                     to_string(batch) + ", which do not broadcast to the shape " + to_string(outer) +
                     " to be drawn");

  const Array factor = factor_of(cast_to(cov, common, where), method, where);
  const Array z = normal(key, rng::join(outer, Shape{n}), result, where);
  // z factor^T: for one covariance a product of matrices, else one product per vector.
  const bool is_one = cov.ndim() == 2 && z.ndim() > 1;
  const Array mixed =
      is_one ? matmul(Operand(z, where), Operand(transpose(Operand(factor, where)), where))
             : squeeze(
                   Operand(matmul(Operand(factor, where), Operand(expand_dims(Operand(z, where), -1), where)),
                           where),
                   Axes(-1));
  return add(Operand(cast_to(mean, common, where), where), Operand(mixed, where));
}

Array orthogonal(const Key& key, std::int64_t n, Shape shape, Dtype dtype, std::optional<std::int64_t> given,
                 Where where) {
  const std::int64_t m = given.value_or(n), rows = std::max(n, m), columns = std::min(n, m);
  if (n < 0 || m < 0)
    throw ArgumentError(call_text("orthogonal", where) + ": the sizes " + std::to_string(n) + " and " +
                        std::to_string(m) + " must not be negative");
  const Array z = normal(key, rng::join(shape, Shape{rows, columns}), dtype, where);
  const auto [q, r] = linalg::qr(Operand(z, where));
  // With the signs of R's diagonal Q does not depend on how it was computed, and is uniformly distributed.
  const int ndim = z.ndim();
  const Array on_diagonal =
      tessera::where(Operand(eye(columns, bool_), where), Operand(r, where), Operand(0, where));
  const Array signs = sign(Operand(sum(Operand(on_diagonal, where), Axes(ndim - 2), true), where));
  const Array x = multiply(Operand(q, where), Operand(signs, where));
  return n < m ? swapaxes(Operand(x, where), -1, -2) : x;
}

}  // namespace tessera::random
