// Continuous distributions: elementwise functions of uniform or normal draws, which fuse into one pass over
// the drawn block.
#include <cmath>
#include <limits>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"
#include "random/traced.hpp"

namespace tessera::random {
namespace {

double tiny(Dtype dtype) {
  return dtype == float32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
}
double epsilon(Dtype dtype) { return dtype == float32 ? 0x1p-23 : 0x1p-52; }

Traced uniform_in(const Key& key, const Shape& shape, Dtype dtype, double minval, double maxval,
                  Where where) {
  return {uniform_of(key, shape, dtype, minval, maxval, where), where};
}
// -log(1 - u): u may be 0, never 1.
Traced exponential_of(const Key& key, const Shape& shape, Dtype dtype, Where where) {
  return -apply(log1p, -uniform_in(key, shape, dtype, 0, 1, where));
}

}  // namespace

Array exponential(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "exponential", where);
  return exponential_of(key, shape, dtype, where).x;
}

Array gumbel(const Key& key, Shape shape, Dtype dtype, Resolution resolution, Where where) {
  check_draw(key, shape, dtype, "gumbel", where);
  if (resolution == Resolution::low)
    return (-apply(log, -apply(log, uniform_in(key, shape, dtype, tiny(dtype), 1, where)))).x;
  // Below 1/2, a second draw fills in the digits that one lacks.
  const auto slab = [&](std::int64_t i) {
    return Traced{rng::uniform(key.data, shape, dtype, 0, 1, counter_mode(), where, {i, 2}), where};
  };
  const Traced high = slab(0),
               floor{Array(std::max(epsilon(dtype) * epsilon(dtype) / 2, tiny(dtype))), where};
  const Traced fine = high + epsilon(dtype) * slab(1) + floor;
  const Traced is_large{greater_equal(high.operand(), Operand(0.5, where)), where};
  const Traced x{tessera::where(is_large.operand(), high.operand(), fine.operand()), where};
  return (-apply(log, -apply(log1p, -x))).x;
}

Array laplace(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "laplace", where);
  const Traced u = uniform_in(key, shape, dtype, -1 + epsilon(dtype) / 2, 1, where);
  return (apply(sign, u) * apply(log1p, -apply(abs, u))).x;
}

Array logistic(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "logistic", where);
  const Traced u = uniform_in(key, shape, dtype, tiny(dtype), 1, where);
  return (apply(log, u) - apply(log1p, -u)).x;
}

Array cauchy(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "cauchy", where);
  return apply(tan, M_PI * (uniform_in(key, shape, dtype, epsilon(dtype), 1, where) - 0.5)).x;
}

Array maxwell(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "maxwell", where);
  const Array components = normal_of(key, rng::join(shape, Shape{3}), dtype, where);
  return sqrt(Operand(sum(Operand(square(Operand(components, where)), where), Axes(-1)), where));
}

Array double_sided_maxwell(const Key& key, const Array& loc, const Array& scale, Shape shape, Dtype dtype,
                           Where where) {
  check_draw(key, shape, dtype, "double_sided_maxwell", where);
  const Shape of_parameters = drawn_shape({}, {loc, scale}, "double_sided_maxwell", where);
  shape = rng::join(shape.empty() ? of_parameters : shape, of_parameters);
  const auto keys = split(key, 2, where);
  const Traced size{maxwell(keys[0], shape, dtype, where), where},
      direction{rademacher(keys[1], shape, dtype, where), where};
  return (direction * size * Traced{scale, where} + Traced{loc, where}).x;
}

Array truncated_normal(const Key& key, double lower, double upper, Shape shape, Dtype dtype, Where where) {
  check_draw(key, shape, dtype, "truncated_normal", where);
  const auto bounded = [&]<class T>(T lo, T hi) {
    const T root_two = static_cast<T>(M_SQRT2), infinity = std::numeric_limits<T>::infinity();
    const Array x = rng::normal(key.data, shape, dtype, std::erf(lo / root_two), std::erf(hi / root_two),
                                counter_mode(), where);
    return clip(Operand(x, where), Operand(std::nextafter(lo, infinity), where),
                Operand(std::nextafter(hi, -infinity), where));
  };
  if (dtype == float32) return bounded(static_cast<float>(lower), static_cast<float>(upper));
  return bounded(lower, upper);
}

Array truncated_normal(const Key& key, const Array& lower, const Array& upper, DrawShape shape, Dtype dtype,
                       Where where) {
  check_key(key, "truncated_normal", where);
  const Shape drawn = drawn_shape(shape.shape, {lower, upper}, "truncated_normal", where);
  check_draw(key, drawn, dtype, "truncated_normal", where);
  const Traced lo{cast_to(lower, dtype, where), where}, hi{cast_to(upper, dtype, where), where},
      root_two{cast_to(Array(M_SQRT2), dtype, where), where};
  const Traced u{uniform(key, drawn, dtype, apply(erf, lo / root_two).x, apply(erf, hi / root_two).x, where),
                 where};
  const Traced x = root_two * apply(erf_inv, u);
  const double infinity = std::numeric_limits<double>::infinity();
  return clip(x.operand(), Operand(nextafter(lo.operand(), Operand(infinity, where)), where),
              Operand(nextafter(hi.operand(), Operand(-infinity, where)), where));
}

Array pareto(const Key& key, const Array& b, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "pareto", where);
  const Traced exponent{parameter(b, dtype, "pareto", where), where};
  const Shape drawn = drawn_shape(shape.shape, {b}, "pareto", where);
  check_draw(key, drawn, dtype, "pareto", where);
  return apply(exp, exponential_of(key, drawn, dtype, where) / exponent).x;
}

Array weibull_min(const Key& key, const Array& scale, const Array& concentration, Shape shape, Dtype dtype,
                  Where where) {
  check_draw(key, shape, dtype, "weibull_min", where);
  const Array shape_parameter =
      concentration.is_weakly_typed() ? cast_to(concentration, dtype, where) : concentration;
  const Traced inverse = Traced{Array(1.0), where} / Traced{shape_parameter, where};
  const Traced e = exponential_of(key, shape, dtype, where);
  return (Traced{power(e.operand(), inverse.operand()), where} * Traced{scale, where}).x;
}

Array rayleigh(const Key& key, const Array& scale, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "rayleigh", where);
  const Traced size{parameter(scale, dtype, "rayleigh", where), where};
  const Shape drawn = drawn_shape(shape.shape, {scale}, "rayleigh", where);
  check_draw(key, drawn, dtype, "rayleigh", where);
  return (size * apply(sqrt, -2.0 * apply(log, uniform_in(key, drawn, dtype, 0, 1, where)))).x;
}

Array lognormal(const Key& key, const Array& sigma, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "lognormal", where);
  const Shape drawn = drawn_shape(shape.shape, {sigma}, "lognormal", where);
  const Traced width{
      is_complex(dtype) ? cast_to(sigma, dtype, where) : parameter(sigma, dtype, "lognormal", where), where};
  return apply(exp, Traced{normal(key, drawn, dtype, where), where} * width).x;
}

Array triangular(const Key& key, const Array& left, const Array& mode, const Array& right, DrawShape shape,
                 Dtype dtype, Where where) {
  check_key(key, "triangular", where);
  const auto given = [&](const Array& p) { return Traced{parameter(p, dtype, "triangular", where), where}; };
  const Traced l = given(left), m = given(mode), r = given(right);
  const Shape drawn = drawn_shape(shape.shape, {left, mode, right}, "triangular", where);
  check_draw(key, drawn, dtype, "triangular", where);
  const Traced u = uniform_in(key, drawn, dtype, 0, 1, where), one{Array(1.0), where};
  const Traced rising = l + apply(sqrt, u * (r - l) * (m - l)),
               falling = r - apply(sqrt, (one - u) * (r - l) * (r - m));
  const Traced is_rising{less(u.operand(), ((m - l) / (r - l)).operand()), where};
  return tessera::where(is_rising.operand(), rising.operand(), falling.operand());
}

Array wald(const Key& key, const Array& mean, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "wald", where);
  const Traced m{parameter(mean, dtype, "wald", where), where};
  const Shape drawn = drawn_shape(shape.shape, {mean}, "wald", where);
  check_draw(key, drawn, dtype, "wald", where);
  const auto keys = split(key, 2, where);
  const Traced y = apply(square, Traced{normal_of(keys[0], drawn, dtype, where), where}),
               z = uniform_in(keys[1], drawn, dtype, 0, 1, where);
  const Traced m2 = m * m;
  const Traced x = m + m2 * y / 2 - m / 2 * apply(sqrt, 4.0 * m * y + m2 * (y * y));
  const Traced is_small{less_equal(z.operand(), (m / (m + x)).operand()), where};
  return tessera::where(is_small.operand(), x.operand(), (m2 / x).operand());
}

}  // namespace tessera::random
