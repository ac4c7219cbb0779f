// Functions of elements.
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/special.hpp>

#include <numbers>
#include <set>

#include "stablehlo/matrices/packed.hpp"
#include "stablehlo/rules/known.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

using Unary = Array (*)(const Operand&);
using Binary = Array (*)(const Operand&, const Operand&);

// A rule of one operand, or of two of one dtype, that is a function of tessera.
template <Unary f> Arrays unary(OpCall& s) {
  s.want_operands(1);
  return {f(s.x[0])};
}
void want_alike(const OpCall& s) {
  s.want_operands(2);
  if (s.x[0].dtype() != s.x[1].dtype())
    s.refuse("operands of " + name(s.x[0].dtype()) + " and " + name(s.x[1].dtype()));
}
template <Binary f> Arrays binary(OpCall& s) {
  want_alike(s);
  return {f(s.x[0], s.x[1])};
}
template <Array (*f)(const Array&)> Arrays own_unary(OpCall& s) {
  s.want_operands(1);
  return {f(s.x[0])};
}
template <Array (*f)(const Array&, const Array&)> Arrays own_binary(OpCall& s) {
  want_alike(s);
  return {f(s.x[0], s.x[1])};
}

// The quotient of integers is rounded towards 0; by 0 it has all bits set.
Array quotient(const Array& a, const Array& b) {
  if (!is_integer(a.dtype())) return divide(a, b);
  const Array zero = number_like(0, a);
  Array result = floor_divide(a, b);
  if (is_signed_integer(a.dtype())) {
    const Array rest = subtract(a, multiply(result, b));
    const Array is_rounded_down = not_equal(rest, zero) & not_equal(less(a, zero), less(b, zero));
    result = add(result, astype(is_rounded_down, a.dtype()));
  }
  return where(equal(b, zero), bitwise_invert(zero), result);
}

// The sign of a; a itself for b = 0.
Array rest_of(const Array& a, const Array& b) {
  if (!is_integer(a.dtype())) return fmod(a, b);
  const Array zero = number_like(0, a);
  const Array safe = where(equal(b, zero), number_like(1, a), b);
  return where(equal(b, zero), a, fmod(a, safe));
}

Array sign_of(const Array& x) {
  if (is_complex(x.dtype()) || !is_floating(x.dtype())) return sign(x);
  return where(equal(x, number_like(0, x)), x, sign(x));  // keeps the sign of -0
}

Array round_away(const Array& x) {
  const Array size = abs(x), below = floor(size);
  const Array away =
      where(greater_equal(subtract(size, below), number_like(0.5, x)), add(below, number_like(1, x)), below);
  const Array rounded = is_half(x.dtype())
                            ? astype(copysign(astype(away, float32), astype(x, float32)), x.dtype())
                            : copysign(away, x);
  return where(isfinite(x), rounded, x);
}

Array logistic(const Array& x) {
  if (!is_complex(x.dtype())) return sigmoid(x);
  const Array one = number_like(1, x);
  return divide(one, add(one, exp(negative(x))));
}
Array inverse_root(const Array& x) {
  return is_complex(x.dtype()) ? divide(number_like(1, x), sqrt(x)) : rsqrt(x);
}
Array conjugate(const Array& x) {
  return is_complex(x.dtype()) ? conj(x) : make_complex(x, number_like(0, x));
}
Array is_positive_infinity(const Array& x) { return isinf(x) & greater(x, number_like(0, x)); }
Array is_negative_infinity(const Array& x) { return isinf(x) & less(x, number_like(0, x)); }

Arrays clamp(OpCall& s) {
  s.want_operands(3);
  return {smaller(larger(s.x[1], s.x[0]), s.x[2])};
}

Arrays chosen(OpCall& s) {
  s.want_operands(3);
  if (s.x[0].dtype() != bool_) s.refuse("the predicate is " + name(s.x[0].dtype()) + " and not bool");
  if (const auto upper = upper_of_packed(s)) return {*upper};
  return {where(s.x[0], s.x[1], s.x[2])};
}

Arrays compare(OpCall& s) {
  want_alike(s);
  std::string direction = s.word("comparison_direction"), type = s.word("compare_type");
  if (direction.empty() && !s.op.words.empty()) direction = s.op.words[0];
  if (type.empty() && s.op.words.size() > 1) type = s.op.words[1];
  Array a = s.x[0], b = s.x[1];
  if (type == "TOTALORDER" && is_floating(a.dtype())) a = total_order_key(a), b = total_order_key(b);
  if (direction == "EQ") return {equal(a, b)};
  if (direction == "NE") return {not_equal(a, b)};
  if (direction == "LT") return {less(a, b)};
  if (direction == "LE") return {less_equal(a, b)};
  if (direction == "GT") return {greater(a, b)};
  if (direction == "GE") return {greater_equal(a, b)};
  s.refuse("no comparison " + shown(direction));
}

Arrays convert(OpCall& s) {
  s.want_operands(1);
  const Dtype to = s.type().dtype;
  const Array& x = s.x[0];
  return {is_complex(x.dtype()) && !is_complex(to) && to != bool_ ? astype(real(x), to) : astype(x, to)};
}

Arrays next_after(OpCall& s) {
  want_alike(s);
  return {nextafter(s.x[0], s.x[1])};
}

Arrays exclusive_or(OpCall& s) {
  want_alike(s);
  if (const auto bits = known_xor(s)) return {*bits};
  return {bitwise_xor(s.x[0], s.x[1])};
}

const Rules& table() {
  static const Rules all{
      {"stablehlo.abs", unary<abs>},
      {"stablehlo.cbrt", unary<cbrt>},
      {"stablehlo.ceil", unary<ceil>},
      {"stablehlo.cosine", unary<cos>},
      {"stablehlo.exponential", unary<exp>},
      {"stablehlo.exponential_minus_one", unary<expm1>},
      {"stablehlo.floor", unary<floor>},
      {"stablehlo.imag", unary<imag>},
      {"stablehlo.is_finite", unary<isfinite>},
      {"stablehlo.log", unary<log>},
      {"stablehlo.log_plus_one", unary<log1p>},
      {"stablehlo.logistic", own_unary<logistic>},
      {"stablehlo.negate", unary<negative>},
      {"stablehlo.not", unary<bitwise_invert>},
      {"stablehlo.real", unary<real>},
      {"stablehlo.round_nearest_afz", own_unary<round_away>},
      {"stablehlo.round_nearest_even", unary<round>},
      {"stablehlo.rsqrt", own_unary<inverse_root>},
      {"stablehlo.sign", own_unary<sign_of>},
      {"stablehlo.sine", unary<sin>},
      {"stablehlo.sqrt", unary<sqrt>},
      {"stablehlo.tan", unary<tan>},
      {"stablehlo.tanh", unary<tanh>},
      {"stablehlo.add", binary<add>},
      {"stablehlo.and", binary<bitwise_and>},
      {"stablehlo.atan2", binary<atan2>},
      {"stablehlo.complex", binary<make_complex>},
      {"stablehlo.divide", own_binary<quotient>},
      {"stablehlo.maximum", own_binary<larger>},
      {"stablehlo.minimum", own_binary<smaller>},
      {"stablehlo.multiply", binary<multiply>},
      {"stablehlo.or", binary<bitwise_or>},
      {"stablehlo.power", binary<power>},
      {"stablehlo.remainder", own_binary<rest_of>},
      {"stablehlo.subtract", binary<subtract>},
      {"stablehlo.xor", exclusive_or},
      {"stablehlo.clamp", clamp},
      {"stablehlo.compare", compare},
      {"stablehlo.convert", convert},
      {"stablehlo.select", chosen},
      {"chlo.acos", unary<acos>},
      {"chlo.acosh", unary<acosh>},
      {"chlo.asin", unary<asin>},
      {"chlo.asinh", unary<asinh>},
      {"chlo.atan", unary<atan>},
      {"chlo.atanh", unary<atanh>},
      {"chlo.bessel_i1e", unary<i1e>},
      {"chlo.conj", own_unary<conjugate>},
      {"chlo.cosh", unary<cosh>},
      {"chlo.digamma", unary<digamma>},
      {"chlo.erf", unary<erf>},
      {"chlo.erf_inv", unary<erf_inv>},
      {"chlo.erfc", unary<erfc>},
      {"chlo.is_inf", unary<isinf>},
      {"chlo.is_neg_inf", own_unary<is_negative_infinity>},
      {"chlo.is_pos_inf", own_unary<is_positive_infinity>},
      {"chlo.lgamma", unary<lgamma>},
      {"chlo.next_after", next_after},
      {"chlo.polygamma", binary<polygamma>},
      {"chlo.sinh", unary<sinh>},
      {"chlo.square", unary<square>},
      {"chlo.tan", unary<tan>},
      {"chlo.zeta", binary<zeta>},
  };
  return all;
}

}  // namespace

void add_elementwise(Rules& rules) { rules.insert(table().begin(), table().end()); }

bool is_elementwise(std::string_view name) {
  static const std::set<std::string, std::less<>> others{"stablehlo.constant",
                                                         "stablehlo.bitcast_convert",
                                                         "stablehlo.popcnt",
                                                         "stablehlo.count_leading_zeros",
                                                         "stablehlo.shift_left",
                                                         "stablehlo.shift_right_arithmetic",
                                                         "stablehlo.shift_right_logical",
                                                         "stablehlo.reduce_precision",
                                                         "stablehlo.optimization_barrier",
                                                         "call",
                                                         "func.call",
                                                         "stablehlo.composite"};
  return table().find(name) != table().end() || others.find(name) != others.end();
}

}  // namespace tessera::stablehlo
