// Arithmetic ops. In derivatives g is the cotangent, x, a, b are the operands, y is the result.
#include <tessera/control/lax.hpp>
#include <tessera/ops/special.hpp>

#include <cmath>

#include "ops/create/scalar.hpp"
#include "ops/elementwise/define.hpp"
#include "ops/elementwise/internal.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using kernels::map;
using A = const Array&;

const ElementwiseOp add_op{map<"add">, DtypeRule::any, "a + b; of bools: or", reals().complexes(-1.5, 1.5),
                           linear([](A g, A, A, A) { return g; }, [](A g, A, A, A) { return g; })};
const ElementwiseOp subtract_op{map<"subtract">, DtypeRule::numeric, "a - b", reals().complexes(-1.5, 1.5),
                                linear([](A g, A, A, A) { return g; }, [](A g, A, A, A) { return -g; })};
const ElementwiseOp multiply_op{
    map<"multiply">, DtypeRule::any, "a b; of bools: and", reals().complexes(-1.5, 1.5),
    linear_in_each([](A g, A, A b, A) { return g * b; }, [](A g, A a, A, A) { return g * a; })};
const ElementwiseOp divide_op{
    map<"divide">, DtypeRule::inexact, "a / b", reals(0.5, 2).complexes(0.5, 1.5),
    linear_in_first([](A g, A, A b, A) { return g / b; }, [](A g, A, A b, A y) { return -g * y / b; })};
const ElementwiseOp remainder_op{
    map<"remainder">, DtypeRule::ordered, "a - b floor(a / b), of the sign of b; of integers 0 where b is 0",
    reals(1.1, 7.7),
    derivative([](A g, A, A, A) { return g; }, [](A g, A a, A b, A) { return -g * floor_divide(a, b); })};
const ElementwiseOp floor_divide_op{map<"floor_divide">, DtypeRule::ordered,
                                    "floor(a / b); of integers 0 where b is 0", reals(1.1, 7.7),
                                    piecewise_constant()};
const ElementwiseOp power_op{
    map<"power">, DtypeRule::numeric, "a to the power b",
    reals(0.4, 2).complexes(0.4, 1.5).within(1.1, std::pow),
    derivative(
        [](A g, A a, A b, A) {
          return where(b == 0, zeros_like(g), g * b * power(a, where(b == 0, ones_like(b), b - 1)));
        },
        [](A g, A a, A, A y) { return g * y * log(where(a == 0, ones_like(a), a)); })};

// The fraction of the cotangent that an operand gets: half for each at a tie, none of a NaN.
Array share_of(A a, A b, A result) {
  return where(a == result, where(b == result, 0.5, ones_like(result)), zeros_like(result));
}
Derivative chosen() {
  return derivative([](A g, A a, A b, A y) { return g * share_of(a, b, y); },
                    [](A g, A a, A b, A y) { return g * share_of(b, a, y); });
}
const ElementwiseOp maximum_op{map<"maximum">, DtypeRule::any, "the larger; NaN where one is NaN", reals(),
                               chosen()};
const ElementwiseOp minimum_op{map<"minimum">, DtypeRule::any, "the smaller; NaN where one is NaN", reals(),
                               chosen()};

// The cotangent goes to the operand that is no NaN; if both are, to the second.
Derivative chosen_number() {
  return derivative([](A g, A a, A b, A y) { return g * where(isnan(y), zeros_like(y), share_of(a, b, y)); },
                    [](A g, A a, A b, A y) { return g * where(isnan(y), ones_like(y), share_of(b, a, y)); });
}
const ElementwiseOp fmax_op{map<"fmax">, DtypeRule::any, "the larger; where one is NaN, the other", reals(),
                            chosen_number()};
const ElementwiseOp fmin_op{map<"fmin">, DtypeRule::any, "the smaller; where one is NaN, the other", reals(),
                            chosen_number()};

const ElementwiseOp atan2_op{map<"atan2">, DtypeRule::floating, "angle of the point (b, a)",
                             reals(0.3, 2).within(3.5, std::atan2, 1.5),
                             derivative([](A g, A a, A b, A) { return g * b / (a * a + b * b); },
                                        [](A g, A a, A b, A) { return -g * a / (a * a + b * b); })};
const ElementwiseOp hypot_op{
    map<"hypot">, DtypeRule::floating, "sqrt(a^2 + b^2) without overflow",
    reals(0.3, 2).within(1.5, std::hypot),
    derivative([](A g, A a, A, A y) { return g * (a / where(y == 0, ones_like(y), y)); },
               [](A g, A, A b, A y) { return g * (b / where(y == 0, ones_like(y), y)); })};
// exp(a) in exp(y), also where both are infinite.
Array share_of_sum(A a, A b, A y) { return where(a == y, share_of(a, b, y), exp(a - y)); }
const ElementwiseOp logaddexp_op{map<"logaddexp">, DtypeRule::floating,
                                 "log(exp(a) + exp(b)) without overflow", reals(),
                                 derivative([](A g, A a, A b, A y) { return g * share_of_sum(a, b, y); },
                                            [](A g, A a, A b, A y) { return g * share_of_sum(b, a, y); })};
const ElementwiseOp copysign_op{
    map<"copysign">, DtypeRule::floating, "|a| with the sign of b", reals(),
    derivative([](A g, A a, A b, A) { return where(a < 0, -g, g) * copysign(ones_like(a), b); },
               [](A g, A, A, A) { return zeros_like(g); })};
const ElementwiseOp nextafter_op{
    map<"nextafter">, DtypeRule::floating, "the number next to a on the way to b", reals(),
    no_derivative("it moves by one unit in the last place, which is not differentiable")};
const ElementwiseOp multiply_add_op{
    map<"multiply_add">, DtypeRule::floating, "a b + c, rounded once", reals(),
    derivative([](A g, A, A b, A, A) { return g * b; }, [](A g, A a, A, A, A) { return g * a; },
               [](A g, A, A, A, A) { return g; })};
const ElementwiseOp condition_estimate_op{
    map<"copy">,
    DtypeRule::floating,
    "x, as a result without derivative",
    reals(),
    no_derivative("the estimate follows a few chosen vectors, and jumps where others are chosen; "
                  "linalg::cond(a, 1) and cond(a) can be differentiated"),
    "condition_estimate"};

const ElementwiseOp negative_op{map<"negative">, DtypeRule::numeric, "-x", reals().complexes(),
                                linear([](A g, A, A) { return -g; })};
const ElementwiseOp reciprocal_op{map<"reciprocal">, DtypeRule::inexact, "1 / x",
                                  reals(0.4, 2).complexes(0.3, 0.9),
                                  derivative([](A g, A, A y) { return -g * y * y; })};
const ElementwiseOp square_op{map<"square">, DtypeRule::numeric, "x x", reals().complexes(),
                              derivative([](A g, A x, A) { return g * x * 2; })};
// The sign of a complex number is its direction: only the component of a step orthogonal to z changes it.
const ElementwiseOp sign_op{map<"sign">, DtypeRule::numeric, "-1, 0 or 1; of complex z: z / |z|",
                            reals().complexes(0.3, 0.9), derivative([](A g, A x, A y) {
                              if (!is_complex(y.dtype())) return Array();
                              return (g - conj(y) * real(g * y)) / where(x == 0, ones_like(abs(x)), abs(x));
                            })};
const ElementwiseOp abs_op{map<"abs">, DtypeRule::real_part, "absolute value", reals().complexes(),
                           derivative([](A g, A x, A) {
                             if (is_complex(x.dtype())) return make_complex(g, zeros_like(g)) * conj(sign(x));
                             return where(x >= 0, g, -g);  // 1 at 0, as in JAX
                           })};
const ElementwiseOp floor_op{map<"floor">, DtypeRule::floating, "the next whole number below",
                             reals(-2.9, 2.9), piecewise_constant()};
const ElementwiseOp ceil_op{map<"ceil">, DtypeRule::floating, "the next whole number above", reals(-2.9, 2.9),
                            piecewise_constant()};
const ElementwiseOp round_op{map<"round">, DtypeRule::ordered,
                             "the nearest whole number, the even one of two", reals(-2.9, 2.9),
                             piecewise_constant()};
const ElementwiseOp trunc_op{map<"trunc">, DtypeRule::floating, "the next whole number towards 0",
                             reals(-2.9, 2.9), piecewise_constant()};

// Whether a ** b has the bits of a * a, without a second operand: b is the number 2, and a's dtype stays.
bool is_square(const Array& a, const Array& b) {
  if (!a.node() || !b.node() || a.is_weakly_typed() || !b.is_weakly_typed()) return false;
  const Dtype dtype = a.dtype();
  if (!is_integer(dtype) && dtype != float32 && dtype != float64) return false;
  const auto exponent = scalar_value(b);
  if (!exponent) return false;
  return exponent->is_integer ? exponent->integer == 2 : exponent->floating == 2.0 && !is_integer(dtype);
}

bool is_bool_array(const Operand& x) { return x.array.node() && is_bool(x.array.dtype()); }

// A negative number that the user wrote as the exponent of integers is a mistake: nearly all results are 0.
void check_exponent(const Array& a, const Array& b) {
  if (!a.node() || !b.node() || !is_integer(a.dtype()) || !b.is_weakly_typed()) return;
  const auto exponent = scalar_value(b);
  if (!exponent || !exponent->is_integer || exponent->integer >= 0 || is_unsigned_integer(a.dtype())) return;
  throw ArgumentError(call_text() + ": " + name(a.dtype()) + " to the power " +
                      std::to_string(exponent->integer) + " is no integer; take power(astype(x, float32), " +
                      std::to_string(exponent->integer) + ")");
}

}  // namespace

Array add(const Operand& a, const Operand& b) { return add_op({a, b}); }
Array subtract(const Operand& a, const Operand& b) {
  const Call call("subtract", a.where);
  if (is_bool_array(a) && is_bool_array(b))
    throw DtypeError(call_text() + ": bool - bool is ambiguous; a ^ b is true where they differ, " +
                     "astype(a, int32) - b a number");
  return subtract_op({a, b});
}
Array multiply(const Operand& a, const Operand& b) { return multiply_op({a, b}); }
Array divide(const Operand& a, const Operand& b) { return divide_op({a, b}); }
Array remainder(const Operand& a, const Operand& b) { return remainder_op({a, b}); }
Array floor_divide(const Operand& a, const Operand& b) { return floor_divide_op({a, b}); }
Array power(const Operand& a, const Operand& b) {
  const Call call("power", a.where);
  check_exponent(a.array, b.array);
  return is_square(a.array, b.array) ? square_op({a}) : power_op({a, b});
}
Array maximum(const Operand& a, const Operand& b) { return maximum_op({a, b}); }
Array minimum(const Operand& a, const Operand& b) { return minimum_op({a, b}); }
Array fmax(const Operand& a, const Operand& b) { return fmax_op({a, b}); }
Array fmin(const Operand& a, const Operand& b) { return fmin_op({a, b}); }
Array atan2(const Operand& a, const Operand& b) { return atan2_op({a, b}); }
Array hypot(const Operand& a, const Operand& b) { return hypot_op({a, b}); }
Array logaddexp(const Operand& a, const Operand& b) { return logaddexp_op({a, b}); }
Array copysign(const Operand& a, const Operand& b) { return copysign_op({a, b}); }
// nextafter of 16-bit floats adds or subtracts 1 in their bits, which grow with the magnitude.
static Array half_after(const Array& a, const Array& b) {
  const Dtype half = a.dtype();
  const Array step = astype(where((a < b) == (a > 0), 1, -1), int16);
  const Array next = bitcast_convert_type(bitcast_convert_type(a, int16) + step, half);
  const Array least = bitcast_convert_type(ones({}, int16), half);  // above 0
  const Array beside_zero = where(b < 0, -least, least);
  return where(isnan(a) | isnan(b), a + b, where(a == b, b, where(a == 0, beside_zero, next)));
}
Array nextafter(const Operand& a, const Operand& b) {
  const Call call("nextafter", a.where);
  check_usable(a.array);
  check_usable(b.array);
  const Dtype dtype = promote(WeakDtype{a.array.dtype(), a.array.is_weakly_typed()},
                              WeakDtype{b.array.dtype(), b.array.is_weakly_typed()})
                          .dtype;
  if (is_half(dtype)) return half_after(cast_to(a.array, dtype), cast_to(b.array, dtype));
  return nextafter_op({a, b});
}
Array multiply_add(const Operand& x, const Operand& y, const Operand& z) {
  return multiply_add_op({x, y, z});
}
Array condition_estimate(const Operand& x) { return condition_estimate_op({x}); }
Array negative(const Operand& x) {
  const Call call("negative", x.where);
  if (is_bool_array(x))
    throw DtypeError(call_text() + ": a bool has no negative; logical_not(x), or negative(astype(x, int32))");
  return negative_op({x});
}
Array positive(const Operand& x) {
  const Call call("positive", x.where);
  return x.array;
}
Array reciprocal(const Operand& x) { return reciprocal_op({x}); }
Array square(const Operand& x) { return square_op({x}); }
Array sign(const Operand& x) { return sign_op({x}); }
Array abs(const Operand& x) {
  const Call call("abs", x.where);
  return is_bool(x.array.dtype()) ? x.array : abs_op({x});
}
// Integers are returned unchanged.
Array floor(const Operand& x) {
  const Call call("floor", x.where);
  return is_inexact(x.array.dtype()) ? floor_op({x}) : x.array;
}
Array ceil(const Operand& x) {
  const Call call("ceil", x.where);
  return is_inexact(x.array.dtype()) ? ceil_op({x}) : x.array;
}
Array round(const Operand& x) {
  const Call call("round", x.where);

  if (is_complex(x.array.dtype())) return make_complex(round(real(x)), round(imag(x)));
  return is_inexact(x.array.dtype()) ? round_op({x}) : x.array;
}
Array trunc(const Operand& x) {
  const Call call("trunc", x.where);
  return is_inexact(x.array.dtype()) ? trunc_op({x}) : x.array;
}

Array operator+(const Operand& a, const Operand& b) { return add(a, b); }
Array operator-(const Operand& a, const Operand& b) { return subtract(a, b); }
Array operator*(const Operand& a, const Operand& b) { return multiply(a, b); }
Array operator/(const Operand& a, const Operand& b) { return divide(a, b); }
Array operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
Array operator-(const Operand& x) { return negative(x); }
Array& operator+=(Array& a, const Operand& b) {
  const Call call("add", b.where);
  return a = add(a, b);
}
Array& operator-=(Array& a, const Operand& b) {
  const Call call("subtract", b.where);
  return a = subtract(a, b);
}
Array& operator*=(Array& a, const Operand& b) {
  const Call call("multiply", b.where);
  return a = multiply(a, b);
}
Array& operator/=(Array& a, const Operand& b) {
  const Call call("divide", b.where);
  return a = divide(a, b);
}

}  // namespace tessera
