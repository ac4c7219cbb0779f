// Special functions, and functions of the parts of numbers. In derivatives g is the cotangent. If a function
// has no derivative by one of its operands, that operand is an integer in its test samples.
#include <tessera/ops/special.hpp>

#include "ops/create/scalar.hpp"
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using kernels::map;
using A = const Array&;
constexpr auto floating = DtypeRule::floating;

// Densities of the gamma and beta distributions.
Array gamma_density(A a, A x) { return exp((a - 1) * log(x) - x - lgamma(a)); }
Array beta_density(A a, A b, A x) { return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b)); }

extern const ElementwiseOp igamma_by_a_op, betainc_by_a_op;

const ElementwiseOp igamma_op{map<"igamma">, floating, "regularised lower incomplete gamma function",
                              reals({0.5, 4}, {0.4, 5}, {}).differentiable_once(),
                              derivative(
                                  [](A g, A a, A x, A) {
                                    return g * igamma_by_a_op({a, x});
                                  },
                                  [](A g, A a, A x, A) { return g * gamma_density(a, x); })};
const ElementwiseOp igammac_op{map<"igammac">, floating, "1 - igamma, exact where that is small",
                               reals({0.5, 4}, {0.4, 5}, {}).differentiable_once(),
                               derivative(
                                   [](A g, A a, A x, A) {
                                     return -g * igamma_by_a_op({a, x});
                                   },
                                   [](A g, A a, A x, A) { return -g * gamma_density(a, x); })};
const ElementwiseOp igamma_by_a_op{map<"igamma_grad_a">, floating,
                                   "derivative of igamma by its first operand", reals({0.5, 4}, {0.4, 5}, {}),
                                   no_derivative("igamma is differentiated once by its first operand")};
const ElementwiseOp betainc_op{map<"betainc">, floating, "regularised incomplete beta function",
                               reals({0.6, 3}, {0.7, 3}, {0.1, 0.9}).differentiable_once(),
                               derivative(
                                   [](A g, A a, A b, A x, A) {
                                     return g * betainc_by_a_op({a, b, x});
                                   },
                                   [](A g, A a, A b, A x, A) {
                                     return -g * betainc_by_a_op({b, a, 1 - x});
                                   },
                                   [](A g, A a, A b, A x, A) { return g * beta_density(a, b, x); })};
const ElementwiseOp betainc_by_a_op{map<"betainc_grad_a">, floating,
                                    "derivative of betainc by its first operand",
                                    reals({0.6, 3}, {0.7, 3}, {0.1, 0.9}),
                                    no_derivative("betainc is differentiated once by its first operands")};
const ElementwiseOp zeta_op{
    map<"zeta">, floating, "Hurwitz's zeta function", integers(2, 5),
    derivative(NoDerivative{}, [](A g, A s, A q, A) { return -g * s * zeta(s + 1, q); })};
const ElementwiseOp polygamma_op{
    map<"polygamma">, floating, "a derivative of digamma", integers(1, 4),
    derivative(NoDerivative{}, [](A g, A n, A x, A) { return g * polygamma(n + 1, x); })};

const ElementwiseOp i0_op{map<"i0">, floating, "modified Bessel function of order 0", reals(-2, 2),
                          derivative([](A g, A x, A) { return g * i1(x); })};
const ElementwiseOp i1_op{map<"i1">, floating, "modified Bessel function of order 1", reals(0.3, 3),
                          derivative([](A g, A x, A y) {
                            const Array is_zero = x == 0, safe = where(is_zero, ones_like(x), x);
                            return g * where(is_zero, 0.5 * ones_like(x), i0(x) - y / safe);
                          })};
const ElementwiseOp i0e_op{map<"i0e">, floating, "exp(-|x|) i0(x)", reals(0.3, 3),
                           derivative([](A g, A x, A y) { return g * (i1e(x) - sign(x) * y); })};
const ElementwiseOp i1e_op{map<"i1e">, floating, "exp(-|x|) i1(x)", reals(0.3, 3),
                           derivative([](A g, A x, A y) {
                             const Array is_zero = x == 0, safe = where(is_zero, ones_like(x), x);
                             return g * where(is_zero, 0.5 * ones_like(x), i0e(x) - y * (sign(x) + 1 / safe));
                           })};

const ElementwiseOp fmod_op{
    map<"fmod">, DtypeRule::ordered, "remainder with the sign of a; of integers 0 where b is 0",
    reals({2, 7}, {1.1, 1.9}, {}),
    derivative([](A g, A, A, A) { return g; }, [](A g, A a, A b, A) { return -g * trunc(a / b); })};
const ElementwiseOp ldexp_op{map<"ldexp">, floating, "x 2^n", integers(-3, 3),
                             derivative([](A g, A, A n, A) { return ldexp(g, n); }, NoDerivative{})};
const ElementwiseOp frexp_op{map<"frexp_exponent">, floating, "n of x = m 2^n, |m| in [0.5, 1)", reals(),
                             piecewise_constant()};

Derivative of_integers() { return no_derivative("it is a function of integers"); }
const ElementwiseOp gcd_op{map<"gcd">, DtypeRule::shift, "greatest common divisor", integers(-30, 30),
                           of_integers()};
const ElementwiseOp lcm_op{map<"lcm">, DtypeRule::shift, "least common multiple", integers(-30, 30),
                           of_integers()};
const ElementwiseOp population_count_op{map<"population_count">, DtypeRule::shift, "how many bits are set",
                                        integers(-30, 30), of_integers()};

bool is_order_zero(const Array& n) {
  const auto value = scalar_value(n);
  return value && (value->is_integer ? value->integer == 0 : value->floating == 0.0);
}

}  // namespace

Array igamma(const Operand& a, const Operand& x) { return igamma_op({a, x}); }
Array igammac(const Operand& a, const Operand& x) { return igammac_op({a, x}); }
Array betainc(const Operand& a, const Operand& b, const Operand& x) { return betainc_op({a, b, x}); }
Array zeta(const Operand& s, const Operand& q) { return zeta_op({s, q}); }
Array polygamma(const Operand& n, const Operand& x) {
  const Call call("polygamma", n.where);
  check_usable(n.array);
  if (is_order_zero(n.array)) return digamma(x);
  const Array order = polygamma_op({n, x});
  return scalar_value(n.array) ? order : where(n.array == 0, digamma(x), order);
}
Array gammaln(const Operand& x) {
  const Call call("gammaln", x.where);
  return lgamma(x);
}
Array betaln(const Operand& a, const Operand& b) {
  const Call call("betaln", a.where);
  return lgamma(a) + lgamma(b) - lgamma(a.array + b.array);
}
Array i0(const Operand& x) { return i0_op({x}); }
Array i1(const Operand& x) { return i1_op({x}); }
Array i0e(const Operand& x) { return i0e_op({x}); }
Array i1e(const Operand& x) { return i1e_op({x}); }
Array kaiser(std::int64_t n, double beta, Dtype dtype, std::source_location where) {
  const Call call("kaiser", where);
  if (n < 0) throw ArgumentError(call_text() + ": the size " + std::to_string(n) + " is negative");
  if (n <= 1) return ones({n}, dtype);
  const Array t = linspace(-1, 1, n, float64);
  return astype(i0(beta * sqrt(maximum(1 - t * t, 0.0))) / i0(astype(beta, float64)), dtype);
}

Array fmod(const Operand& a, const Operand& b) { return fmod_op({a, b}); }
Array signbit(const Operand& x) {
  const Call call("signbit", x.where);
  check_usable(x.array);
  return is_inexact(x.array.dtype()) ? copysign(1.0, x) < 0 : x.array < 0;
}
Array ldexp(const Operand& x, const Operand& n) { return ldexp_op({x, n}); }
std::pair<Array, Array> frexp(const Operand& x) {
  const Call call("frexp", x.where);
  const Array n = frexp_op({x});
  return {ldexp(x, -n), astype(n, int32)};
}
Array gcd(const Operand& a, const Operand& b) { return gcd_op({a, b}); }
Array lcm(const Operand& a, const Operand& b) { return lcm_op({a, b}); }
Array population_count(const Operand& x) { return population_count_op({x}); }

}  // namespace tessera
