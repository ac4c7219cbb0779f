// + - * / and their kin. vjp rules write g for the cotangent, x, a, b for the operands, y for the result.
#include "ops/elementwise/define.hpp"
#include "ops/elementwise/internal.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const Array& g(const VjpArgs& v) { return v.cotangents[0]; }
const Array& y(const VjpArgs& v) { return v.out[0]; }

// Each operand's part, summed over what was broadcast; nothing is built for operands that need none.
template <class A, class B> Cotangents both(const VjpArgs& v, A&& da, B&& db) {
  Cotangents result(2);
  if (v.wanted[0]) result[0] = sum_to_operand(da(), v.in[0]);
  if (v.wanted[1]) result[1] = sum_to_operand(db(), v.in[1]);
  return result;
}

// The derivative is zero wherever it exists.
Cotangents piecewise_constant(const VjpArgs& v) { return Cotangents(v.in.size()); }

TESSERA_ROW(add, elementwise(
                     "add", DtypeRule::any,
                     [](const VjpArgs& v) {
                       return both(
                           v, [&] { return g(v); }, [&] { return g(v); });
                     },
                     linear_both))
TESSERA_ROW(subtract, elementwise(
                          "subtract", DtypeRule::numeric,
                          [](const VjpArgs& v) {
                            return both(
                                v, [&] { return g(v); }, [&] { return -g(v); });
                          },
                          linear_both))
TESSERA_ROW(multiply, elementwise(
                          "multiply", DtypeRule::any,
                          [](const VjpArgs& v) {
                            return both(
                                v, [&] { return g(v) * v.in[1]; }, [&] { return g(v) * v.in[0]; });
                          },
                          linear_either))
TESSERA_ROW(divide, elementwise(
                        "divide", DtypeRule::inexact,
                        [](const VjpArgs& v) {
                          return both(
                              v, [&] { return g(v) / v.in[1]; }, [&] { return -g(v) * y(v) / v.in[1]; });
                        },
                        linear_unary))
TESSERA_ROW(remainder, elementwise("remainder", DtypeRule::ordered, [](const VjpArgs& v) {
              return both(
                  v, [&] { return g(v); }, [&] { return -g(v) * floor_divide(v.in[0], v.in[1]); });
            }))
TESSERA_ROW(floor_divide, elementwise("floor_divide", DtypeRule::ordered, piecewise_constant))
TESSERA_ROW(power, elementwise("power", DtypeRule::numeric, [](const VjpArgs& v) {
              const Array &a = v.in[0], &b = v.in[1];
              return both(
                  v, [&] { return g(v) * b * power(a, where(b == 0, ones_like(b), b - 1)); },
                  [&] { return g(v) * y(v) * log(where(a == 0, ones_like(a), a)); });
            }))
// At a tie both sides get half.
Array share_of(const Array& a, const Array& b, const Array& result) {
  const Dtype d = result.dtype();
  return astype(a == result, d) / (astype(a == result, d) + astype(b == result, d));
}
TESSERA_ROW(maximum, elementwise("maximum", DtypeRule::any, [](const VjpArgs& v) {
              return both(
                  v, [&] { return g(v) * share_of(v.in[0], v.in[1], y(v)); },
                  [&] { return g(v) * share_of(v.in[1], v.in[0], y(v)); });
            }))
TESSERA_ROW(minimum, elementwise("minimum", DtypeRule::any, [](const VjpArgs& v) {
              return both(
                  v, [&] { return g(v) * share_of(v.in[0], v.in[1], y(v)); },
                  [&] { return g(v) * share_of(v.in[1], v.in[0], y(v)); });
            }))
TESSERA_ROW(atan2, elementwise("atan2", DtypeRule::floating, [](const VjpArgs& v) {
              const Array &a = v.in[0], &b = v.in[1];
              return both(
                  v, [&] { return g(v) * b / (a * a + b * b); }, [&] { return -g(v) * a / (a * a + b * b); });
            }))
TESSERA_ROW(hypot, elementwise("hypot", DtypeRule::floating, [](const VjpArgs& v) {
              return both(
                  v, [&] { return g(v) * v.in[0] / y(v); }, [&] { return g(v) * v.in[1] / y(v); });
            }))
TESSERA_ROW(logaddexp, elementwise("logaddexp", DtypeRule::floating, [](const VjpArgs& v) {
              return both(
                  v, [&] { return g(v) * exp(v.in[0] - y(v)); }, [&] { return g(v) * exp(v.in[1] - y(v)); });
            }))
TESSERA_ROW(copysign, elementwise("copysign", DtypeRule::floating, [](const VjpArgs& v) {
              return both(
                  v,
                  [&] {
                    return g(v) * copysign(ones_like(v.in[0]), v.in[0]) *
                           copysign(ones_like(v.in[0]), v.in[1]);
                  },
                  [&] { return zeros_like(g(v)); });
            }))
TESSERA_ROW(multiply_add,
            elementwise("multiply_add", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              Cotangents result(3);
              if (v.wanted[0]) result[0] = sum_to_operand(g(v) * v.in[1], v.in[0]);
              if (v.wanted[1]) result[1] = sum_to_operand(g(v) * v.in[0], v.in[1]);
              if (v.wanted[2]) result[2] = sum_to_operand(g(v), v.in[2]);
              return result;
            }))
TESSERA_ROW(
    condition_estimate,
    elementwise_without_vjp("condition_estimate", DtypeRule::floating,
                            "the estimate follows a few chosen vectors, and jumps where others are chosen; "
                            "linalg::cond(a, 1) and cond(a) can be differentiated",
                            "copy"))
TESSERA_ROW(nextafter,
            elementwise_without_vjp("nextafter", DtypeRule::floating,
                                    "it moves by one unit in the last place, which is not differentiable"))
TESSERA_ROW(negative, elementwise(
                          "negative", DtypeRule::numeric,
                          [](const VjpArgs& v) -> Cotangents { return {-g(v)}; }, linear_unary))
TESSERA_ROW(reciprocal, elementwise("reciprocal", DtypeRule::inexact,
                                    [](const VjpArgs& v) -> Cotangents { return {-g(v) * y(v) * y(v)}; }))
TESSERA_ROW(square, elementwise("square", DtypeRule::numeric,
                                [](const VjpArgs& v) -> Cotangents { return {g(v) * v.in[0] * 2}; }))
// Of a complex number the direction z / |z|: what changes it is the part of a step across z.
TESSERA_ROW(sign, elementwise("sign", DtypeRule::numeric, [](const VjpArgs& v) -> Cotangents {
              if (!is_complex(y(v).dtype())) return {Array()};
              return {(g(v) - conj(y(v)) * real(g(v) * y(v))) /
                      where(v.in[0] == 0, ones_like(abs(v.in[0])), abs(v.in[0]))};
            }))
TESSERA_ROW(abs, elementwise("abs", DtypeRule::real_part, [](const VjpArgs& v) -> Cotangents {
              if (is_complex(v.in[0].dtype()))
                return {make_complex(g(v), zeros_like(g(v))) * conj(sign(v.in[0]))};
              return {g(v) * sign(v.in[0])};
            }))
TESSERA_ROW(floor, elementwise("floor", DtypeRule::floating, piecewise_constant))
TESSERA_ROW(ceil, elementwise("ceil", DtypeRule::floating, piecewise_constant))
TESSERA_ROW(round, elementwise("round", DtypeRule::ordered, piecewise_constant))
TESSERA_ROW(trunc, elementwise("trunc", DtypeRule::floating, piecewise_constant))

}  // namespace

Array add(const Operand& a, const Operand& b) { return apply(add_row(), {a, b}); }
Array subtract(const Operand& a, const Operand& b) { return apply(subtract_row(), {a, b}); }
Array multiply(const Operand& a, const Operand& b) { return apply(multiply_row(), {a, b}); }
Array divide(const Operand& a, const Operand& b) { return apply(divide_row(), {a, b}); }
Array remainder(const Operand& a, const Operand& b) { return apply(remainder_row(), {a, b}); }
Array floor_divide(const Operand& a, const Operand& b) { return apply(floor_divide_row(), {a, b}); }
Array power(const Operand& a, const Operand& b) { return apply(power_row(), {a, b}); }
Array maximum(const Operand& a, const Operand& b) { return apply(maximum_row(), {a, b}); }
Array minimum(const Operand& a, const Operand& b) { return apply(minimum_row(), {a, b}); }
Array atan2(const Operand& a, const Operand& b) { return apply(atan2_row(), {a, b}); }
Array hypot(const Operand& a, const Operand& b) { return apply(hypot_row(), {a, b}); }
Array logaddexp(const Operand& a, const Operand& b) { return apply(logaddexp_row(), {a, b}); }
Array copysign(const Operand& a, const Operand& b) { return apply(copysign_row(), {a, b}); }
Array nextafter(const Operand& a, const Operand& b) { return apply(nextafter_row(), {a, b}); }
Array multiply_add(const Operand& x, const Operand& y, const Operand& z) {
  return apply(multiply_add_row(), {x, y, z});
}
Array condition_estimate(const Operand& x) { return apply(condition_estimate_row(), {x}); }
Array negative(const Operand& x) { return apply(negative_row(), {x}); }
Array positive(const Operand& x) { return x.array; }
Array reciprocal(const Operand& x) { return apply(reciprocal_row(), {x}); }
Array square(const Operand& x) { return apply(square_row(), {x}); }
Array sign(const Operand& x) { return apply(sign_row(), {x}); }
Array abs(const Operand& x) { return is_bool(x.array.dtype()) ? x.array : apply(abs_row(), {x}); }
// Integers are whole already.
Array floor(const Operand& x) { return is_inexact(x.array.dtype()) ? apply(floor_row(), {x}) : x.array; }
Array ceil(const Operand& x) { return is_inexact(x.array.dtype()) ? apply(ceil_row(), {x}) : x.array; }
Array round(const Operand& x) {
  if (is_complex(x.array.dtype())) return make_complex(Operand(round(real(x)), x.where), round(imag(x)));
  return is_inexact(x.array.dtype()) ? apply(round_row(), {x}) : x.array;
}
Array trunc(const Operand& x) { return is_inexact(x.array.dtype()) ? apply(trunc_row(), {x}) : x.array; }

Array operator+(const Operand& a, const Operand& b) { return add(a, b); }
Array operator-(const Operand& a, const Operand& b) { return subtract(a, b); }
Array operator*(const Operand& a, const Operand& b) { return multiply(a, b); }
Array operator/(const Operand& a, const Operand& b) { return divide(a, b); }
Array operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
Array operator-(const Operand& x) { return negative(x); }
Array& operator+=(Array& a, const Operand& b) { return a = add(Operand(a, b.where), b); }
Array& operator-=(Array& a, const Operand& b) { return a = subtract(Operand(a, b.where), b); }
Array& operator*=(Array& a, const Operand& b) { return a = multiply(Operand(a, b.where), b); }
Array& operator/=(Array& a, const Operand& b) { return a = divide(Operand(a, b.where), b); }

}  // namespace tessera
