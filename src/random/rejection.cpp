// Gamma, and the distributions derived from gamma samples; poisson and binomial.
#include <cmath>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

using kernels::GammaSpace;

Array broadcast(const Array& x, const Shape& shape) {
  return x.shape() == shape ? x : broadcast_to(x, shape);
}

Array gamma_of(const Key& key, const Array& alpha, const Shape& shape, Dtype dtype, GammaSpace space) {
  if (is_complex(alpha.dtype()))
    throw DtypeError(call_text() + ": the parameter is complex; it must be real");
  return rng::gamma(key.data, broadcast(cast_to(alpha, dtype), shape), space, threefry());
}
Array chisquare_of(const Key& key, const Array& df, const Shape& shape, Dtype dtype) {
  const Array half = parameter(df, dtype) / 2;
  return exp(gamma_of(key, half, shape, dtype, GammaSpace::log)) * 2.0;
}

}  // namespace

Array gamma(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  const Call call("gamma", where);
  const Shape drawn = checked_shape(key, shape, {alpha}, dtype);
  return gamma_of(key, alpha, drawn, dtype, GammaSpace::linear);
}

Array loggamma(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  const Call call("loggamma", where);
  const Shape drawn = checked_shape(key, shape, {alpha}, dtype);
  return gamma_of(key, alpha, drawn, dtype, GammaSpace::log);
}

Array beta(const Key& key, const Array& a, const Array& b, DrawShape shape, Dtype dtype, Where where) {
  const Call call("beta", where);
  const Shape drawn = checked_shape(key, shape, {a, b}, dtype);
  const auto keys = split(key, 2);
  const Array log_a = gamma_of(keys[0], parameter(a, dtype), drawn, dtype, GammaSpace::log);
  const Array log_b = gamma_of(keys[1], parameter(b, dtype), drawn, dtype, GammaSpace::log);
  // a / (a + b), also if both are too small for the dtype
  const Array largest = maximum(log_a, log_b);
  const Array scaled_a = exp(log_a - largest), scaled_b = exp(log_b - largest);
  return scaled_a / (scaled_a + scaled_b);
}

Array dirichlet(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  const Call call("dirichlet", where);
  check_key(key);
  check_usable(alpha);
  if (alpha.ndim() < 1)
    throw ShapeError(call_text() + ": alpha is a scalar; it needs a dimension of categories");
  const Shape of_alpha = rng::leading_dims(alpha.shape());
  const Shape outer = shape.shape ? *shape.shape : of_alpha;
  if (!(broadcast_shapes(outer, of_alpha) == outer))
    throw ShapeError(call_text() + ": alpha has the leading dimensions " + to_string(of_alpha) +
                     ", which do not broadcast to the shape " + to_string(outer) + " to be drawn");
  const Shape drawn = join(outer, Shape{alpha.shape().back()});
  check_draw(key, drawn, dtype);
  return softmax(gamma_of(key, alpha, drawn, dtype, GammaSpace::log), -1);
}

Array chisquare(const Key& key, const Array& df, DrawShape shape, Dtype dtype, Where where) {
  const Call call("chisquare", where);
  const Shape drawn = checked_shape(key, shape, {df}, dtype);
  return chisquare_of(key, df, drawn, dtype);
}

Array t(const Key& key, const Array& df, DrawShape shape, Dtype dtype, Where where) {
  const Call call("t", where);
  const Shape drawn = checked_shape(key, shape, {df}, dtype);
  const auto keys = split(key, 2);
  const Array n = normal_of(keys[0], drawn, dtype), half = parameter(df, dtype) / 2;
  return n * sqrt(half / gamma_of(keys[1], half, drawn, dtype, GammaSpace::linear));
}

Array f(const Key& key, const Array& dfnum, const Array& dfden, DrawShape shape, Dtype dtype, Where where) {
  const Call call("f", where);
  const Shape drawn = checked_shape(key, shape, {dfnum, dfden}, dtype);
  const auto keys = split(key, 2);  // for the denominator, for the numerator
  const Array numerator = chisquare_of(keys[1], dfnum, drawn, dtype) / parameter(dfnum, dtype);
  const Array denominator = chisquare_of(keys[0], dfden, drawn, dtype) / parameter(dfden, dtype);
  return numerator / denominator;
}

Array generalized_normal(const Key& key, double p, Shape shape, Dtype dtype, Where where) {
  const Call call("generalized_normal", where);
  check_draw(key, shape, dtype);
  const auto keys = split(key, 2);
  const Array g = gamma_of(keys[0], Array(1 / p), shape, dtype, GammaSpace::linear);
  const Array direction = rademacher(keys[1], shape, dtype);
  return direction * power(g, 1 / p);
}

Array ball(const Key& key, std::int64_t d, double p, Shape shape, Dtype dtype, Where where) {
  const Call call("ball", where);
  if (d < 0)
    throw ArgumentError(call_text() + ": the dimension is " + std::to_string(d) +
                        "; it must not be negative");
  check_draw(key, shape, dtype);
  const auto keys = split(key, 2);
  const Array g = generalized_normal(keys[0], p, join(shape, Shape{d}), dtype);
  const Array e = exponential(keys[1], shape, dtype);
  const Array powers = power(abs(g), p);
  const Array radius_p = sum(powers, Axes(-1)) + e;
  return g / expand_dims(power(radius_p, 1 / p), -1);
}

Array poisson(const Key& key, const Array& lambda, DrawShape shape, Dtype dtype, Where where) {
  const Call call("poisson", where);
  check_key(key);
  check_usable(lambda);
  check_integer(dtype);
  if (is_complex(lambda.dtype())) throw DtypeError(call_text() + ": lambda is complex; it must be real");
  const Shape drawn = drawn_shape(shape.shape, {lambda});
  check_shape(drawn, dtype);
  return rng::poisson(key.data, broadcast(cast_to(lambda, float32), drawn), dtype, threefry());
}

Array binomial(const Key& key, const Array& n, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  const Call call("binomial", where);
  const Shape drawn = checked_shape(key, shape, {n, p}, dtype);
  if (is_complex(n.dtype()) || is_complex(p.dtype()))
    throw DtypeError(call_text() + ": a parameter is complex; both must be real");
  const Dtype inner = p.dtype() == float64 && !p.is_weakly_typed() ? float64
                      : p.is_weakly_typed()                        ? dtype
                                                                   : float32;
  const Array drawn_counts = rng::binomial(key.data, broadcast(cast_to(n, inner), drawn),
                                           broadcast(cast_to(p, inner), drawn), threefry());
  return cast_to(drawn_counts, dtype);
}

Array multinomial(const Key& key, const Array& n, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  const Call call("multinomial", where);
  check_key(key);
  check_usable(p);
  if (p.ndim() < 1) throw ShapeError(call_text() + ": p is a scalar; it needs a dimension of outcomes");
  const Shape outer = shape.shape ? *shape.shape : rng::leading_dims(p.shape());
  const auto k = p.shape().back();
  const Dtype inner = is_floating(p.dtype()) ? p.dtype() : float32;
  // Draws one outcome after the other: a binomial of the remaining trials, with the outcome's share of the
  // remaining probability.
  const Array probabilities = broadcast(cast_to(p, inner), join(outer, Shape{k}));
  const auto keys = split(key, static_cast<int>(k));
  Array left = broadcast(cast_to(n, inner), outer);
  std::vector<Array> share(k, left), remaining(share);
  for (std::int64_t i = k; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    share[at] = index(probabilities, {ellipsis, i});
    remaining[at] = i + 1 < k ? remaining[at + 1] + share[at] : share[at];
  }
  std::vector<Array> counts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
    const Array is_zero = equal(remaining[i], 0);
    const Array ratio = share[i] / tessera::where(is_zero, 1, remaining[i]);
    counts.push_back(binomial(keys[i], left, clip(ratio, 0, 1), outer, inner));
    left = left - counts.back();
  }
  return astype(stack(counts, -1), dtype);
}

}  // namespace tessera::random
