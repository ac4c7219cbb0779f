// Bits, uniform, normal, integers, bernoulli.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/build.hpp"
#include "ops/elementwise/internal.hpp"
#include "ops/functions.hpp"
#include "random/draw.hpp"
#include "random/traced.hpp"

namespace tessera::random {
namespace {

double resolution_of(Dtype dtype) { return dtype == float32 ? 0x1p-23 : 0x1p-52; }  // of a uniform draw

}  // namespace
void check_shape(const Shape& shape, Dtype dtype, const char* call, Where where) {
  for (const auto extent : shape)
    if (extent < 0)
      throw ShapeError(call_text(call, where) + ": the shape " + to_string(shape) + " has a negative extent");
  checked_bytes(shape, itemsize(dtype), call);
}

void check_draw(const Key& key, const Shape& shape, Dtype dtype, const char* call, Where where) {
  check_key(key, call, where);
  check_floating(dtype, call, where);
  check_shape(shape, dtype, call, where);
}

Array parameter(const Array& value, Dtype dtype, const char* call, Where where) {
  check_usable(value, call);
  const bool loses = is_complex(value.dtype()) || (value.dtype() == float64 && dtype == float32);
  if (loses && !value.is_weakly_typed())
    throw DtypeError(call_text(call, where) + ": a parameter of dtype " + name(value.dtype()) +
                     " does not fit a result of " + name(dtype) + "; " +
                     (is_complex(value.dtype()) ? "parameters are real"
                                                : "ask for float64, or convert the parameter with astype"));
  return cast_to(value, dtype, where);
}

void check_floating(Dtype dtype, const char* call, Where where) {
  if (!is_floating(dtype))
    throw DtypeError(call_text(call, where) + " gives float32 or float64, not " + name(dtype) +
                     "; convert the result with astype");
}

Shape drawn_shape(const std::optional<Shape>& shape, const std::vector<Array>& parameters, const char* call,
                  Where where) {
  Shape common;
  for (const auto& p : parameters) common = broadcast_shapes(common, p.shape(), call, where);
  if (!shape) return common;
  const Shape both = broadcast_shapes(*shape, common, call, where);
  if (!(both == *shape))
    throw ShapeError(call_text(call, where) + ": the parameters have the shape " + to_string(common) +
                     ", which does not broadcast to the shape " + to_string(*shape) +
                     " to be drawn; draw the shape " + to_string(both) + " instead");
  return *shape;
}

Array uniform_of(const Key& key, const Shape& shape, Dtype dtype, double minval, double maxval, Where where) {
  return rng::uniform(key.data, shape, dtype, minval, maxval, counter_mode(), where);
}
Array normal_of(const Key& key, const Shape& shape, Dtype dtype, Where where) {
  return rng::normal(key.data, shape, dtype, kernels::after_minus_one(dtype), 1, counter_mode(), where);
}

Array bits(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_key(key, "bits", where);
  if (!is_unsigned_integer(dtype))
    throw DtypeError(call_text("bits", where) +
                     " gives unsigned integers (uint8, uint16, uint32, uint64), not " + name(dtype));
  check_shape(shape, dtype, "bits", where);
  return rng::bits(key.data, std::move(shape), dtype, counter_mode(), where);
}

Array uniform(const Key& key, Shape shape, Dtype dtype, double minval, double maxval, Where where) {
  check_key(key, "uniform", where);
  check_floating(dtype, "uniform", where);
  check_shape(shape, dtype, "uniform", where);
  return uniform_of(key, shape, dtype, minval, maxval, where);
}

Array uniform(const Key& key, Shape shape, Dtype dtype, const Array& minval, const Array& maxval,
              Where where) {
  check_key(key, "uniform", where);
  check_floating(dtype, "uniform", where);
  check_shape(shape, dtype, "uniform", where);
  drawn_shape(shape, {minval, maxval}, "uniform", where);
  const Array lo = cast_to(minval, dtype, where), hi = cast_to(maxval, dtype, where);
  const Array u = uniform_of(key, shape, dtype, 0, 1, where),
              span = subtract(Operand(hi, where), Operand(lo, where));
  return maximum(Operand(lo, where),
                 Operand(multiply_add(Operand(u, where), Operand(span, where), Operand(lo, where)), where));
}

Array normal(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_key(key, "normal", where);
  if (!is_inexact(dtype))
    throw DtypeError(call_text("normal", where) + " gives float32, float64, complex64 or complex128, not " +
                     name(dtype) + "; convert the result with astype");
  check_shape(shape, dtype, "normal", where);
  if (!is_complex(dtype)) return normal_of(key, shape, dtype, where);
  const auto keys = split(key, 2, where);
  const Dtype part = real_dtype(dtype);
  const Array root_two = cast_to(Array(std::sqrt(2.0)), part, where);
  return make_complex(Operand(normal_of(keys[0], shape, part, where) / root_two, where),
                      Operand(normal_of(keys[1], shape, part, where) / root_two, where));
}

Array randint(const Key& key, Shape shape, std::int64_t minval, std::int64_t maxval, Dtype dtype,
              Where where) {
  check_key(key, "randint", where);
  if (!is_integer(dtype))
    throw DtypeError(call_text("randint", where) + " gives integers, not " + name(dtype) +
                     "; convert the result with astype");
  check_shape(shape, dtype, "randint", where);
  // The bounds as the dtype has them, and whether maxval is one past its largest value. uint64's largest is
  // past every int64.
  const int bits = 8 * static_cast<int>(itemsize(dtype));
  const bool is_signed = is_signed_integer(dtype);
  const std::int64_t least = is_signed ? std::numeric_limits<std::int64_t>::min() >> (64 - bits) : 0;
  const std::int64_t largest = bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                          : (std::int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  const bool past_the_end = bits < 64 && maxval > largest;
  const std::int64_t lo = std::clamp(minval, least, largest), hi = std::clamp(maxval, least, largest);
  std::uint64_t span = hi > lo ? static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) : 1;
  if (past_the_end && hi > lo) ++span;
  if (bits == 32 && span == std::uint64_t{1} << 32) span = 0;  // the whole range: no remainder
  return rng::integers(key.data, std::move(shape), dtype, lo, span, counter_mode(), where);
}

Array bernoulli(const Key& key, double p, Shape shape, Where where) {
  return bernoulli(key, Array(p), std::move(shape), Resolution::low, where);
}

Array bernoulli(const Key& key, const Array& p, DrawShape shape, Resolution resolution, Where where) {
  check_key(key, "bernoulli", where);
  check_usable(p, "bernoulli");
  const Dtype dtype = p.dtype();
  if (!is_floating(dtype))
    throw DtypeError(call_text("bernoulli", where) + ": the probability has dtype " + name(dtype) +
                     "; it must be float32 or float64");
  const Shape drawn = drawn_shape(shape.shape, {p}, "bernoulli", where);
  check_shape(drawn, dtype, "bernoulli", where);
  if (resolution == Resolution::low)
    return less(Operand(uniform_of(key, drawn, dtype, 0, 1, where), where), Operand(p, where));
  const auto slab = [&](std::int64_t i) {
    return Operand(rng::uniform(key.data, drawn, dtype, 0, 1, counter_mode(), where, {i, 2}), where);
  };
  return less(Operand(multiply(slab(1), Operand(resolution_of(dtype), where)), where),
              Operand(subtract(Operand(p, where), slab(0)), where));
}

// JAX tosses coins with 64 bits when 64-bit types are on: here when the result has one.
Array rademacher(const Key& key, Shape shape, Dtype dtype, Where where) {
  check_key(key, "rademacher", where);
  if (is_bool(dtype) || is_unsigned_integer(dtype))
    throw DtypeError(call_text("rademacher", where) + " gives -1 or 1, which " + name(dtype) +
                     " does not hold");
  const Dtype coin = real_dtype(dtype) == float64 || dtype == int64 ? float64 : float32;
  const Traced heads{astype(Operand(bernoulli(key, cast_to(Array(0.5), coin, where), std::move(shape),
                                              Resolution::low, where),
                                    where),
                            dtype),
                     where};
  return (Traced{Array(2), where} * heads - Traced{Array(1), where}).x;
}

Array geometric(const Key& key, const Array& p, DrawShape shape, Dtype dtype, Where where) {
  check_key(key, "geometric", where);
  check_usable(p, "geometric");
  if (!is_integer(dtype))
    throw DtypeError(call_text("geometric", where) + " gives integers, not " + name(dtype) +
                     "; convert the result with astype");
  if (is_complex(p.dtype()))
    throw DtypeError(call_text("geometric", where) + ": the probability is complex; it must be real");
  const Shape drawn = drawn_shape(shape.shape, {p}, "geometric", where);
  const Dtype floating = is_floating(p.dtype()) ? p.dtype() : float32;
  check_shape(drawn, floating, "geometric", where);
  const Traced u{uniform_of(key, drawn, floating, 0, 1, where), where};
  const Traced positive{tessera::where(equal(u.operand(), Operand(0, where)), Operand(1, where), u.operand()),
                        where};  // the log of 0 is left out
  const Traced failures =
      apply(floor, apply(log, positive) / apply(log1p, -Traced{cast_to(p, floating, where), where}));
  return astype((failures + Traced{Array(1), where}).operand(), dtype);
}

}  // namespace tessera::random
