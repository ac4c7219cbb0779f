// Random vectors with a covariance, and random orthogonal matrices.
#include <tessera/linalg.hpp>
#include <tessera/ops/reproducible.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

// f with f f^T = cov.
Array factor_of(const Array& cov, CovarianceFactor method) {
  if (method == CovarianceFactor::cholesky) return linalg::cholesky(cov);
  const auto scaled = [&](const Array& vectors, const Array& variances) {
    return multiply(vectors, expand_dims(sqrt(variances), -2));
  };
  if (method == CovarianceFactor::eigh) {
    const auto [w, v] = linalg::eigh(cov);
    return scaled(v, w);
  }
  const auto [u, s, vh] = linalg::svd(cov);
  return scaled(u, s);
}

}  // namespace

Array multivariate_normal(const Key& key, const Array& mean, const Array& cov, DrawShape shape,
                          std::optional<Dtype> dtype, CovarianceFactor method, Where where) {
  const Call call("multivariate_normal", where);
  check_key(key);
  check_usable(mean);
  check_usable(cov);
  const auto inexact = [](const Array& x) { return is_inexact(x.dtype()) ? x.dtype() : float32; };
  const Dtype common = promote(WeakDtype{inexact(mean), mean.is_weakly_typed()},
                               WeakDtype{inexact(cov), cov.is_weakly_typed()})
                           .dtype;
  check_floating(common);
  const Dtype result = dtype.value_or(common);
  check_floating(result);
  if (mean.ndim() < 1) throw ShapeError(call_text() + ": the mean is a scalar; it must be a vector (..., n)");
  const auto n = mean.shape().back();
  const auto& of_cov = cov.shape();
  if (of_cov.ndim() < 2 || of_cov.back() != n || of_cov[of_cov.size() - 2] != n)
    throw ShapeError(call_text() + ": the mean has " + std::to_string(n) +
                     " components, the covariance the shape " + to_string(of_cov) + "; it must be (..., " +
                     std::to_string(n) + ", " + std::to_string(n) + ")");
  const Shape batch =
      broadcast_shapes(rng::leading_dims(mean.shape()), rng::leading_dims(rng::leading_dims(of_cov)));
  const Shape outer = shape.shape ? *shape.shape : batch;
  if (!(broadcast_shapes(outer, batch) == outer))
    throw ShapeError(call_text() + ": mean and covariance have the leading dimensions " + to_string(batch) +
                     ", which do not broadcast to the shape " + to_string(outer) + " to be drawn");

  // Draws have the same bits in every layout. A split covariance is factorized by its ranks together, which a
  // scope would refuse.
  const ReproducibleScope scope(is_reproducible() || !cov.is_committed() || cov.is_fully_replicated());
  const Array factor = factor_of(cast_to(cov, common), method);
  const Array z = normal(key, join(outer, Shape{n}), result);
  // z factor^T; few terms are added element by element, which is quicker in a ReproducibleScope.
  Array mixed;
  if (n > 0 && n <= 4)
    for (int k = 0; k < n; ++k) {
      const Array term = multiply(z(ellipsis, slice(k, k + 1)), factor(ellipsis, k));
      mixed = k == 0 ? term : add(mixed, term);
    }
  else if (cov.ndim() == 2 && z.ndim() > 1)
    mixed = matmul(z, transpose(factor));
  else
    mixed = squeeze(matmul(factor, expand_dims(z, -1)), Axes(-1));
  return add(cast_to(mean, common), mixed);
}

Array orthogonal(const Key& key, std::int64_t n, Shape shape, Dtype dtype, std::optional<std::int64_t> given,
                 Where where) {
  const Call call("orthogonal", where);
  const std::int64_t m = given.value_or(n), rows = std::max(n, m), columns = std::min(n, m);
  if (n < 0 || m < 0)
    throw ArgumentError(call_text() + ": the sizes " + std::to_string(n) + " and " + std::to_string(m) +
                        " must not be negative");
  const Array z = normal(key, join(shape, Shape{rows, columns}), dtype);
  const auto [q, r] = linalg::qr(z);
  // The signs of R's diagonal make Q independent of the algorithm, and uniformly distributed.
  const int ndim = z.ndim();
  const Array on_diagonal = tessera::where(eye(columns, bool_), r, 0);
  const Array signs = sign(sum(on_diagonal, Axes(ndim - 2), true));
  const Array x = multiply(q, signs);
  return n < m ? swapaxes(x, -1, -2) : x;
}

}  // namespace tessera::random
