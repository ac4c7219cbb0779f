// Gamma, and the distributions that are made of gamma samples; poisson and binomial.
#include <cmath>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"
#include "random/traced.hpp"

namespace tessera::random {
namespace {

using kernels::GammaSpace;

// The shape to draw, and the checks of everything that a distribution with parameters checks.
Shape checked_shape(const Key& key, const DrawShape& shape, const std::vector<Array>& parameters, Dtype dtype,
                    const char* call, Where where) {
  check_key(key, call, where);
  for (const auto& p : parameters) check_usable(p, call);
  const Shape drawn = drawn_shape(shape.shape, parameters, call, where);
  check_draw(key, drawn, dtype, call, where);
  return drawn;
}

Array broadcast(const Array& x, const Shape& shape, Where where) {
  return x.shape() == shape ? x : broadcast_to(Operand(x, where), shape);
}

Traced gamma_of(const Key& key, const Array& alpha, const Shape& shape, Dtype dtype, GammaSpace space,
                const char* call, Where where) {
  if (is_complex(alpha.dtype()))
    throw DtypeError(call_text(call, where) + ": the parameter is complex; it must be real");
  return {rng::gamma(key.data, broadcast(cast_to(alpha, dtype, where), shape, where), space, counter_mode(),
                     where),
          where};
}
Traced chisquare_of(const Key& key, const Array& df, const Shape& shape, Dtype dtype, const char* call,
                    Where where) {
  const Traced half = Traced{parameter(df, dtype, call, where), where} / 2;
  return apply(exp, gamma_of(key, half.x, shape, dtype, GammaSpace::log, call, where)) *
         Traced{Array(2.0), where};
}

}  // namespace

Array gamma(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {alpha}, dtype, "gamma", where);
  return gamma_of(key, alpha, drawn, dtype, GammaSpace::linear, "gamma", where).x;
}

Array loggamma(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {alpha}, dtype, "loggamma", where);
  return gamma_of(key, alpha, drawn, dtype, GammaSpace::log, "loggamma", where).x;
}

Array beta(const Key& key, const Array& a, const Array& b, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {a, b}, dtype, "beta", where);
  const auto keys = split(key, 2, where);
  const Traced log_a =
      gamma_of(keys[0], parameter(a, dtype, "beta", where), drawn, dtype, GammaSpace::log, "beta", where);
  const Traced log_b =
      gamma_of(keys[1], parameter(b, dtype, "beta", where), drawn, dtype, GammaSpace::log, "beta", where);
  // a / (a + b), where both may be too small for the dtype
  const Traced largest{maximum(log_a.operand(), log_b.operand()), where};
  const Traced scaled_a = apply(exp, log_a - largest), scaled_b = apply(exp, log_b - largest);
  return (scaled_a / (scaled_a + scaled_b)).x;
}

Array dirichlet(const Key& key, const Array& alpha, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "dirichlet", where);
  check_usable(alpha, "dirichlet");
  if (alpha.ndim() < 1)
    throw ShapeError(call_text("dirichlet", where) +
                     ": alpha is a scalar; it needs a dimension of categories");
  const Shape of_alpha = rng::leading_dims(alpha.shape());
  const Shape outer = shape.shape ? *shape.shape : of_alpha;
  if (!(broadcast_shapes(outer, of_alpha, "dirichlet", where) == outer))
    throw ShapeError(call_text("dirichlet", where) + ": alpha has the leading dimensions " +
                     to_string(of_alpha) + ", which do not broadcast to the shape " + to_string(outer) +
                     " to be drawn");
  const Shape drawn = rng::join(outer, Shape{alpha.shape().back()});
  check_draw(key, drawn, dtype, "dirichlet", where);
  return softmax(gamma_of(key, alpha, drawn, dtype, GammaSpace::log, "dirichlet", where).operand(), -1);
}

Array chisquare(const Key& key, const Array& df, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {df}, dtype, "chisquare", where);
  return chisquare_of(key, df, drawn, dtype, "chisquare", where).x;
}

Array t(const Key& key, const Array& df, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {df}, dtype, "t", where);
  const auto keys = split(key, 2, where);
  const Traced n{normal_of(keys[0], drawn, dtype, where), where},
      half = Traced{parameter(df, dtype, "t", where), where} / 2;
  return (n * apply(sqrt, half / gamma_of(keys[1], half.x, drawn, dtype, GammaSpace::linear, "t", where))).x;
}

Array f(const Key& key, const Array& dfnum, const Array& dfden, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {dfnum, dfden}, dtype, "f", where);
  const auto keys = split(key, 2, where);  // the denominator's, the numerator's
  const Traced numerator = chisquare_of(keys[1], dfnum, drawn, dtype, "f", where) /
                           Traced{parameter(dfnum, dtype, "f", where), where};
  const Traced denominator = chisquare_of(keys[0], dfden, drawn, dtype, "f", where) /
                             Traced{parameter(dfden, dtype, "f", where), where};
  return (numerator / denominator).x;
}

Array generalized_normal(const Key& key, double p, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "generalized_normal", where);
  const auto keys = split(key, 2, where);
  const Traced g =
      gamma_of(keys[0], Array(1 / p), shape, dtype, GammaSpace::linear, "generalized_normal", where);
  const Traced direction{rademacher(keys[1], shape, dtype, where), where};
  return (direction * Traced{power(g.operand(), Operand(1 / p, where)), where}).x;
}

Array ball(const Key& key, std::int64_t d, double p, Shape shape, Dtype dtype, Where where) {
  if (d < 0)
    throw ArgumentError(call_text("ball", where) + ": the dimension is " + std::to_string(d) +
                        "; it must not be negative");
  check_draw(key, shape, dtype, "ball", where);
  const auto keys = split(key, 2, where);
  const Traced g{generalized_normal(keys[0], p, rng::join(shape, Shape{d}), dtype, where), where};
  const Traced e{exponential(keys[1], shape, dtype, where), where};
  const Traced powers{power(apply(abs, g).operand(), Operand(p, where)), where};
  const Traced radius_p = Traced{sum(powers.operand(), Axes(-1)), where} + e;
  return (g /
          Traced{expand_dims(Operand(power(radius_p.operand(), Operand(1 / p, where)), where), -1), where})
      .x;
}

Array poisson(const Key& key, const Array& lambda, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "poisson", where);
  check_usable(lambda, "poisson");
  if (!is_integer(dtype))
    throw DtypeError(call_text("poisson", where) + " gives integers, not " + name(dtype) +
                     "; convert the result with astype");
  if (is_complex(lambda.dtype()))
    throw DtypeError(call_text("poisson", where) + ": lambda is complex; it must be real");
  const Shape drawn = drawn_shape(shape.shape, {lambda}, "poisson", where);
  check_shape(drawn, dtype, "poisson", where);
  return rng::poisson(key.data, broadcast(cast_to(lambda, float32, where), drawn, where), dtype,
                      counter_mode(), where);
}

Array binomial(const Key& key, const Array& n, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  const Shape drawn = checked_shape(key, shape, {n, p}, dtype, "binomial", where);
  if (is_complex(n.dtype()) || is_complex(p.dtype()))
    throw DtypeError(call_text("binomial", where) + ": a parameter is complex; both must be real");
  const Dtype inner = p.dtype() == float64 && !p.is_weakly_typed() ? float64
                      : p.is_weakly_typed()                        ? dtype
                                                                   : float32;
  const Array drawn_counts =
      rng::binomial(key.data, broadcast(cast_to(n, inner, where), drawn, where),
                    broadcast(cast_to(p, inner, where), drawn, where), counter_mode(), where);
  return cast_to(drawn_counts, dtype, where);
}

Array multinomial(const Key& key, const Array& n, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "multinomial", where);
  check_usable(p, "multinomial");
  if (p.ndim() < 1)
    throw ShapeError(call_text("multinomial", where) + ": p is a scalar; it needs a dimension of outcomes");
  const Shape outer = shape.shape ? *shape.shape : rng::leading_dims(p.shape());
  const auto k = p.shape().back();
  const Dtype inner = is_floating(p.dtype()) ? p.dtype() : float32;
  // Outcome after outcome: how many of the trials that are left, with its share of the probability that is
  // left.
  const Array probabilities = broadcast(cast_to(p, inner, where), rng::join(outer, Shape{k}), where);
  const auto keys = split(key, static_cast<int>(k), where);
  Traced left{broadcast(cast_to(n, inner, where), outer, where), where};
  std::vector<Traced> share(k, left), remaining(share);
  for (std::int64_t i = k; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    share[at] = {index(probabilities, {ellipsis, i}, where), where};
    remaining[at] = i + 1 < k ? remaining[at + 1] + share[at] : share[at];
  }
  std::vector<Array> counts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
    const Traced is_zero{equal(remaining[i].operand(), Operand(0, where)), where};
    const Traced ratio =
        share[i] /
        Traced{tessera::where(is_zero.operand(), Operand(1, where), remaining[i].operand()), where};
    counts.push_back(binomial(keys[i], left.x, clip(ratio.operand(), Operand(0, where), Operand(1, where)),
                              outer, inner, where));
    left = left - Traced{counts.back(), where};
  }
  return astype(Operand(stack(counts, -1), where), dtype);
}

}  // namespace tessera::random
