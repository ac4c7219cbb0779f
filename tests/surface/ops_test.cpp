// Every op, and every op with a number where an array may stand.
#include "surface/gives.hpp"

namespace tessera::test {
namespace {

#define UNARY(name) GIVES(Array, name(x))
#define BINARY(name)        \
  GIVES(Array, name(x, y)); \
  GIVES(Array, name(x, 2)); \
  GIVES(Array, name(1.5, y))
#define REDUCE(name)               \
  GIVES(Array, name(x));           \
  GIVES(Array, name(x, 0));        \
  GIVES(Array, name(x, {0, 1}));   \
  GIVES(Array, name(x, {}, true)); \
  GIVES(Array, name(x, std::vector<int>{0}))

GIVES(Array, -x);
GIVES(Array, !x);
GIVES(Array, x + y - 1 * x / 2.0 % y);
GIVES(Array, ((x == y) != (x < 1)) & ((x <= y) | ((1 > x) ^ (x >= y))));
UNARY(abs);
UNARY(exp);
UNARY(exp2);
UNARY(expm1);
UNARY(log);
UNARY(log2);
UNARY(log10);
UNARY(log1p);
UNARY(sin);
UNARY(cos);
UNARY(tan);
UNARY(asin);
UNARY(acos);
UNARY(atan);
UNARY(sinh);
UNARY(cosh);
UNARY(tanh);
UNARY(asinh);
UNARY(acosh);
UNARY(atanh);
UNARY(erf);
UNARY(erf_inv);
UNARY(erfc);
UNARY(sqrt);
UNARY(cbrt);
UNARY(rsqrt);
UNARY(square);
UNARY(reciprocal);
UNARY(negative);
UNARY(positive);
UNARY(floor);
UNARY(ceil);
UNARY(round);
UNARY(trunc);
UNARY(sign);
UNARY(isnan);
UNARY(isfinite);
UNARY(isinf);
UNARY(real);
UNARY(imag);
UNARY(conj);
UNARY(sigmoid);
UNARY(relu);
UNARY(gelu);
UNARY(silu);
UNARY(softplus);
UNARY(logical_not);
UNARY(bitwise_invert);
UNARY(copy);
BINARY(power);
BINARY(maximum);
BINARY(minimum);
BINARY(atan2);
BINARY(hypot);
BINARY(logaddexp);
BINARY(remainder);
BINARY(floor_divide);
BINARY(copysign);
BINARY(logical_and);
BINARY(logical_or);
BINARY(logical_xor);
BINARY(bitwise_left_shift);
BINARY(bitwise_right_shift);
REDUCE(sum);
REDUCE(mean);
REDUCE(prod);
REDUCE(max);
REDUCE(min);
REDUCE(any);
REDUCE(all);
REDUCE(var);
REDUCE(std);
REDUCE(count_nonzero);
REDUCE(logsumexp);
GIVES(Array, argmax(x));
GIVES(Array, argmax(x, 0, true));
GIVES(Array, argmin(x));
GIVES(Array, argmin(x, 0));
GIVES(Array, softmax(x));
GIVES(Array, log_softmax(x, 0));
GIVES(Array, clip(x, 0, 1));
GIVES(Array, where(x, y, 0));
GIVES(Array, astype(x, float64));
GIVES(Array, cumsum(x, 0));
GIVES(Array, cumprod(x, 0));
GIVES(Array, reshape(x, {2, -1}));
GIVES(Array, transpose(x));
GIVES(Array, transpose(x, {1, 0}));
GIVES(Array, swapaxes(x, 0, 1));
GIVES(Array, moveaxis(x, 0, 1));
GIVES(Array, squeeze(x));
GIVES(Array, squeeze(x, 0));
GIVES(Array, expand_dims(x, 0));
GIVES(Array, broadcast_to(x, {2, 3}));
GIVES(Array, concatenate({x, y}));
GIVES(Array, concatenate({x, y}, 1));
GIVES(Array, stack({x, y}, 1));
GIVES(std::vector<Array>, split(x, 2, 1));
GIVES(Array, flip(x));
GIVES(Array, flip(x, 1));
GIVES(Array, roll(x, 1, 0));
GIVES(Array, pad(x, {{1, 1}, {0, 2}}));
GIVES(Array, pad(x, {{1, 1}}, 3.0));
GIVES(Array, tile(x, {2, 1}));
GIVES(Array, repeat(x, 2, 0));
GIVES(Array, tril(x));
GIVES(Array, triu(x, 1));
GIVES(Array, diagonal(x));
GIVES(Array, diagonal(x, 1));
GIVES(Array, take(x, y, 0));
GIVES(Array, take_along_axis(x, y, 0));
GIVES(Array, searchsorted(x, y));
GIVES(Array, sort(x));
GIVES(Array, argsort(x, 0));
using TwoArrays = std::pair<Array, Array>;
GIVES(TwoArrays, top_k(x, 3));
GIVES(Array, matmul(x, y));
GIVES(Array, dot(x, y));
GIVES(Array, vdot(x, y));
GIVES(Array, inner(x, y));
GIVES(Array, outer(x, y));
GIVES(Array, tensordot(x, y));
GIVES(Array, tensordot(x, y, 1));
GIVES(Array, tensordot(x, y, {{0}, {1}}));
GIVES(Array, einsum("ij,jk->ik", x, y));
GIVES(Array, trace(x));
GIVES(Array, conv(x, y));
GIVES(Array, conv(x, y, {.strides = {2, 2}, .padding = {{1, 1}, {1, 1}}}));

}  // namespace
}  // namespace tessera::test
