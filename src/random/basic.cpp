// Bits, uniform, normal, integers, bernoulli.
#include <tessera/control/lax.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/build.hpp"
#include "ops/elementwise/internal.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"

namespace tessera::random {
namespace {

// The number of fraction bits of a uniform draw.
int digits_of(Dtype dtype) {
  return dtype == float32 ? 23 : dtype == float64 ? 52 : dtype == float16 ? 10 : 7;
}
double resolution_of(Dtype dtype) { return std::ldexp(1.0, -digits_of(dtype)); }

// As in JAX: the fraction bits of a number in [1, 2) are random, with 16 bits drawn for float16 and 8 for
// bfloat16; then 1 is subtracted, and the rest is arithmetic of the dtype.
Array uniform_half(const Key& key, const Shape& shape, Dtype dtype, double minval, double maxval) {
  const bool is_bfloat16 = dtype == bfloat16;
  const Array drawn = rng::bits(key.data, shape, is_bfloat16 ? uint8 : uint16, threefry());
  const Array digits = bitwise_right_shift(astype(drawn, uint16), (is_bfloat16 ? 8 : 16) - digits_of(dtype));
  const Array one = bitcast_convert_type(ones({}, dtype), uint16);
  const Array unit = bitcast_convert_type(digits | one, dtype) - 1;
  const Array lo = cast_to(Array(minval), dtype), hi = cast_to(Array(maxval), dtype);
  return maximum(lo, unit * (hi - lo) + lo);
}

}  // namespace
void check_shape(const Shape& shape, Dtype dtype) {
  for (const auto extent : shape)
    if (extent < 0)
      throw ShapeError(call_text() + ": the shape " + to_string(shape) + " has a negative extent");
  checked_bytes(shape, itemsize(dtype), current_call().name);
}

void check_draw(const Key& key, const Shape& shape, Dtype dtype) {
  check_key(key);
  check_floating(dtype);
  check_shape(shape, dtype);
}

Array parameter(const Array& value, Dtype dtype) {
  check_usable(value);
  const bool loses = is_complex(value.dtype()) || (value.dtype() == float64 && dtype != float64) ||
                     (is_half(dtype) && is_floating(value.dtype()) && value.dtype() != dtype);
  if (loses && !value.is_weakly_typed())
    throw DtypeError(call_text() + ": a parameter of dtype " + name(value.dtype()) +
                     " does not fit a result of " + name(dtype) + "; " +
                     (is_complex(value.dtype())
                          ? "parameters are real"
                          : "ask for " + name(value.dtype()) + ", or convert the parameter with astype"));
  return cast_to(value, dtype);
}

void check_floating(Dtype dtype) {
  if (!is_floating(dtype))
    throw DtypeError(call_text() + " gives float32, float64, bfloat16 or float16, not " + name(dtype) +
                     "; convert the result with astype");
}

void check_integer(Dtype dtype) {
  if (!is_integer(dtype))
    throw DtypeError(call_text() + " gives integers, not " + name(dtype) +
                     "; convert the result with astype");
}

Shape drawn_shape(const std::optional<Shape>& shape, const std::vector<Array>& parameters) {
  Shape common;
  for (const auto& p : parameters) common = broadcast_shapes(common, p.shape());
  if (!shape) return common;
  const Shape both = broadcast_shapes(*shape, common);
  if (!(both == *shape))
    throw ShapeError(call_text() + ": the parameters have the shape " + to_string(common) +
                     ", which does not broadcast to the shape " + to_string(*shape) +
                     " to be drawn; draw the shape " + to_string(both) + " instead");
  return *shape;
}

Shape checked_shape(const Key& key, const DrawShape& shape, const std::vector<Array>& parameters,
                    Dtype dtype) {
  check_key(key);
  for (const auto& p : parameters) check_usable(p);
  const Shape drawn = drawn_shape(shape.shape, parameters);
  check_draw(key, drawn, dtype);
  return drawn;
}

Array uniform_of(const Key& key, const Shape& shape, Dtype dtype, double minval, double maxval) {
  if (is_half(dtype)) return uniform_half(key, shape, dtype, minval, maxval);
  return rng::uniform(key.data, shape, dtype, minval, maxval, threefry());
}
Array uniform_slab(const Key& key, const Shape& shape, Dtype dtype, std::int64_t i) {
  if (!is_half(dtype)) return rng::uniform(key.data, shape, dtype, 0, 1, threefry(), {i, 2});
  return index(uniform_half(key, join(Shape{2}, shape), dtype, 0, 1), {IndexPart(i)});
}
Array normal_of(const Key& key, const Shape& shape, Dtype dtype) {
  if (is_half(dtype)) {
    const double least = resolution_of(dtype) / 2 - 1;  // the least number above -1
    return erf_inv(uniform_half(key, shape, dtype, least, 1)) * std::sqrt(2.0);
  }
  return rng::normal(key.data, shape, dtype, kernels::after_minus_one(dtype), 1, threefry());
}

Array bits(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("bits", where);
  check_key(key);
  if (!is_unsigned_integer(dtype))
    throw DtypeError(call_text() + " gives unsigned integers (uint8, uint16, uint32, uint64), not " +
                     name(dtype));
  check_shape(shape, dtype);
  return rng::bits(key.data, std::move(shape), dtype, threefry());
}

Array uniform(const Key& key, Shape shape, Dtype dtype, double minval, double maxval, Where where) {
  const Call call("uniform", where);
  check_key(key);
  check_floating(dtype);
  check_shape(shape, dtype);
  return uniform_of(key, shape, dtype, minval, maxval);
}

Array uniform(const Key& key, Shape shape, Dtype dtype, const Array& minval, const Array& maxval,
              Where where) {
  const Call call("uniform", where);
  check_key(key);
  check_floating(dtype);
  check_shape(shape, dtype);
  drawn_shape(shape, {minval, maxval});
  const Array lo = cast_to(minval, dtype), hi = cast_to(maxval, dtype);
  const Array u = uniform_of(key, shape, dtype, 0, 1), span = subtract(hi, lo);
  if (is_half(dtype)) return maximum(lo, u * span + lo);
  return maximum(lo, multiply_add(u, span, lo));
}

Array normal(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("normal", where);
  check_key(key);
  if (!is_inexact(dtype))
    throw DtypeError(call_text() +
                     " gives float32, float64, bfloat16, float16, complex64 or complex128, not " +
                     name(dtype) + "; convert the result with astype");
  check_shape(shape, dtype);
  if (!is_complex(dtype)) return normal_of(key, shape, dtype);
  const auto keys = split(key, 2);
  const Dtype part = real_dtype(dtype);
  const Array root_two = cast_to(Array(std::sqrt(2.0)), part);
  return make_complex(normal_of(keys[0], shape, part) / root_two, normal_of(keys[1], shape, part) / root_two);
}

Array randint(const Key& key, Shape shape, std::int64_t minval, std::int64_t maxval, Dtype dtype,
              Where where) {
  const Call call("randint", where);
  check_key(key);
  check_integer(dtype);
  check_shape(shape, dtype);
  // The bounds converted to the dtype, and whether maxval is one past its largest value. uint64's largest
  // value exceeds every int64.
  const int bits = 8 * static_cast<int>(itemsize(dtype));
  const bool is_signed = is_signed_integer(dtype);
  const std::int64_t least = is_signed ? std::numeric_limits<std::int64_t>::min() >> (64 - bits) : 0;
  const std::int64_t largest = bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                          : (std::int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  const bool past_the_end = bits < 64 && maxval > largest;
  const std::int64_t lo = std::clamp(minval, least, largest), hi = std::clamp(maxval, least, largest);
  std::uint64_t span = hi > lo ? static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) : 1;
  if (past_the_end && hi > lo) ++span;
  if (bits == 32 && span == std::uint64_t{1} << 32) span = 0;  // the full range needs no remainder
  return rng::integers(key.data, std::move(shape), dtype, lo, span, threefry());
}

Array bernoulli(const Key& key, double p, Shape shape, Where where) {
  const Call call("bernoulli", where);
  return bernoulli(key, Array(p), std::move(shape), Resolution::low);
}

Array bernoulli(const Key& key, const Array& p, DrawShape shape, Resolution resolution, Where where) {
  const Call call("bernoulli", where);
  check_key(key);
  check_usable(p);
  const Dtype dtype = p.dtype();
  if (!is_floating(dtype))
    throw DtypeError(call_text() + ": the probability has dtype " + name(dtype) +
                     "; it must be floating-point");
  const Shape drawn = drawn_shape(shape.shape, {p});
  check_shape(drawn, dtype);
  if (resolution == Resolution::low) return less(uniform_of(key, drawn, dtype, 0, 1), p);
  const auto slab = [&](std::int64_t i) { return uniform_slab(key, drawn, dtype, i); };
  return less(multiply(slab(1), resolution_of(dtype)), subtract(p, slab(0)));
}

// Like JAX, uses 64 random bits if 64-bit types are involved: here if the result has one.
Array rademacher(const Key& key, Shape shape, Dtype dtype, Where where) {
  const Call call("rademacher", where);
  check_key(key);
  if (is_bool(dtype) || is_unsigned_integer(dtype))
    throw DtypeError(call_text() + " gives -1 or 1, which " + name(dtype) + " does not hold");
  const Dtype coin = real_dtype(dtype) == float64 || dtype == int64 ? float64 : float32;
  const Array heads =
      astype(bernoulli(key, cast_to(Array(0.5), coin), std::move(shape), Resolution::low), dtype);
  return 2 * heads - 1;
}

Array geometric(const Key& key, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  const Call call("geometric", where);
  check_key(key);
  check_usable(p);
  check_integer(dtype);
  if (is_complex(p.dtype())) throw DtypeError(call_text() + ": the probability is complex; it must be real");
  const Shape drawn = drawn_shape(shape.shape, {p});
  const Dtype floating = is_floating(p.dtype()) ? p.dtype() : float32;
  check_shape(drawn, floating);
  const Array u = uniform_of(key, drawn, floating, 0, 1);
  const Array positive = tessera::where(equal(u, 0), 1, u);  // avoids the log of 0
  const Array failures = floor(log(positive) / log1p(-cast_to(p, floating)));
  return astype((failures + 1), dtype);
}

}  // namespace tessera::random
