// Continuous distributions: elementwise functions of uniform or normal draws, fused into one pass over the
// drawn block.
#include <cmath>
#include <limits>

#include "kernels/visit.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

double tiny(Dtype dtype) {
  return kernels::visit_real(dtype,
                             []<class T>(T) { return static_cast<double>(std::numeric_limits<T>::min()); });
}
double epsilon(Dtype dtype) {
  return kernels::visit_real(
      dtype, []<class T>(T) { return static_cast<double>(std::numeric_limits<T>::epsilon()); });
}

Array uniform_in(const Key& key, const Shape& shape, Dtype dtype, double minval, double maxval) {
  return uniform_of(key, shape, dtype, minval, maxval);
}
// -log(1 - u): u may be 0 but never 1.
Array exponential_of(const Key& key, const Shape& shape, Dtype dtype) {
  return -log1p(-uniform_in(key, shape, dtype, 0, 1));
}

}  // namespace

Array exponential(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("exponential", where);
  check_draw(key, shape, dtype);
  return exponential_of(key, shape, dtype);
}

Array gumbel(const Key& key, Shape shape, Dtype dtype, Resolution resolution, Where where) {
  const Call call("gumbel", where);
  check_draw(key, shape, dtype);
  if (resolution == Resolution::low) return -log(-log(uniform_in(key, shape, dtype, tiny(dtype), 1)));
  // A draw below 1/2 has leading zeros instead of digits: a second draw supplies the lower ones.
  const auto slab = [&](std::int64_t i) { return uniform_slab(key, shape, dtype, i); };
  const Array high = slab(0), floor = Array(std::max(epsilon(dtype) * epsilon(dtype) / 2, tiny(dtype)));
  const Array fine = high + epsilon(dtype) * slab(1) + floor;
  const Array is_large = greater_equal(high, 0.5);
  const Array x = tessera::where(is_large, high, fine);
  return -log(-log1p(-x));
}

Array laplace(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("laplace", where);
  check_draw(key, shape, dtype);
  const Array u = uniform_in(key, shape, dtype, -1 + epsilon(dtype) / 2, 1);
  return sign(u) * log1p(-abs(u));
}

Array logistic(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("logistic", where);
  check_draw(key, shape, dtype);
  const Array u = uniform_in(key, shape, dtype, tiny(dtype), 1);
  return log(u) - log1p(-u);
}

Array cauchy(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("cauchy", where);
  check_draw(key, shape, dtype);
  return tan(M_PI * (uniform_in(key, shape, dtype, epsilon(dtype), 1) - 0.5));
}

Array maxwell(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("maxwell", where);
  check_draw(key, shape, dtype);
  const Array components = normal_of(key, join(shape, Shape{3}), dtype);
  return sqrt(sum(square(components), Axes(-1)));
}

Array double_sided_maxwell(const Key& key, const Array& loc, const Array& scale, Shape shape, Dtype dtype,
                           Where where) {
  const Call call("double_sided_maxwell", where);
  check_draw(key, shape, dtype);
  const Shape of_parameters = drawn_shape({}, {loc, scale});
  shape = join(shape.empty() ? of_parameters : shape, of_parameters);
  const auto keys = split(key, 2);
  const Array size = maxwell(keys[0], shape, dtype), direction = rademacher(keys[1], shape, dtype);
  return direction * size * scale + loc;
}

Array truncated_normal(const Key& key, double lower, double upper, Shape shape, Dtype dtype, Where where) {
  const Call call("truncated_normal", where);
  check_draw(key, shape, dtype);
  const auto bounded = [&]<class T>(T lo, T hi) {
    const T root_two = static_cast<T>(M_SQRT2), infinity = std::numeric_limits<T>::infinity();
    const Array x =
        rng::normal(key.data, shape, dtype, std::erf(lo / root_two), std::erf(hi / root_two), threefry());
    return clip(x, std::nextafter(lo, infinity), std::nextafter(hi, -infinity));
  };
  if (is_half(dtype)) return truncated_normal(key, Array(lower), Array(upper), shape, dtype);
  if (dtype == float32) return bounded(static_cast<float>(lower), static_cast<float>(upper));
  return bounded(lower, upper);
}

Array truncated_normal(const Key& key, const Array& lower, const Array& upper, DrawShape shape, Dtype dtype,
                       Where where) {
  const Call call("truncated_normal", where);
  const Shape drawn = checked_shape(key, shape, {lower, upper}, dtype);
  const Array lo = cast_to(lower, dtype), hi = cast_to(upper, dtype),
              root_two = cast_to(Array(M_SQRT2), dtype);
  const Array u = uniform(key, drawn, dtype, erf(lo / root_two), erf(hi / root_two));
  const Array x = root_two * erf_inv(u);
  const double infinity = std::numeric_limits<double>::infinity();
  return clip(x, nextafter(lo, infinity), nextafter(hi, -infinity));
}

Array pareto(const Key& key, const Array& b, DrawShape shape, Dtype dtype, Where where) {
  const Call call("pareto", where);
  const Shape drawn = checked_shape(key, shape, {b}, dtype);
  const Array exponent = parameter(b, dtype);
  return exp(exponential_of(key, drawn, dtype) / exponent);
}

Array weibull_min(const Key& key, const Array& scale, const Array& concentration, Shape shape, Dtype dtype,
                  Where where) {
  const Call call("weibull_min", where);
  check_draw(key, shape, dtype);
  const Array shape_parameter =
      concentration.is_weakly_typed() ? cast_to(concentration, dtype) : concentration;
  const Array inverse = 1.0 / shape_parameter;
  const Array e = exponential_of(key, shape, dtype);
  return power(e, inverse) * scale;
}

Array rayleigh(const Key& key, const Array& scale, DrawShape shape, Dtype dtype, Where where) {
  const Call call("rayleigh", where);
  const Shape drawn = checked_shape(key, shape, {scale}, dtype);
  const Array size = parameter(scale, dtype);
  return size * sqrt(-2.0 * log(uniform_in(key, drawn, dtype, 0, 1)));
}

Array lognormal(const Key& key, const Array& sigma, DrawShape shape, Dtype dtype, Where where) {
  const Call call("lognormal", where);
  check_key(key);
  const Shape drawn = drawn_shape(shape.shape, {sigma});
  const Array width = is_complex(dtype) ? cast_to(sigma, dtype) : parameter(sigma, dtype);
  return exp(normal(key, drawn, dtype) * width);
}

Array triangular(const Key& key, const Array& left, const Array& mode, const Array& right, DrawShape shape,
                 Dtype dtype, Where where) {
  const Call call("triangular", where);
  const Shape drawn = checked_shape(key, shape, {left, mode, right}, dtype);
  const auto given = [&](const Array& p) { return parameter(p, dtype); };
  const Array l = given(left), m = given(mode), r = given(right);
  const Array u = uniform_in(key, drawn, dtype, 0, 1), one = Array(1.0);
  const Array rising = l + sqrt(u * (r - l) * (m - l)), falling = r - sqrt((one - u) * (r - l) * (r - m));
  const Array is_rising = less(u, ((m - l) / (r - l)));
  return tessera::where(is_rising, rising, falling);
}

Array wald(const Key& key, const Array& mean, DrawShape shape, Dtype dtype, Where where) {
  const Call call("wald", where);
  const Shape drawn = checked_shape(key, shape, {mean}, dtype);
  const Array m = parameter(mean, dtype);
  const auto keys = split(key, 2);
  const Array y = square(normal_of(keys[0], drawn, dtype)), z = uniform_in(keys[1], drawn, dtype, 0, 1);
  const Array m2 = m * m;
  const Array x = m + m2 * y / 2 - m / 2 * sqrt(4.0 * m * y + m2 * (y * y));
  const Array is_small = less_equal(z, (m / (m + x)));
  return tessera::where(is_small, x, (m2 / x));
}

}  // namespace tessera::random
