// Transcendental functions and activations of neural networks. In derivatives g is the cotangent, x the
// operand, y the result.
#include <tessera/ops/special.hpp>

#include <cmath>

#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

using kernels::map;
using A = const Array&;

const ElementwiseOp exp_op{map<"exp">, DtypeRule::inexact, "e to the power x",
                           reals().complexes().within(1.1, std::exp),
                           derivative([](A g, A, A y) { return g * y; })};
const ElementwiseOp exp2_op{map<"exp2">, DtypeRule::floating, "2 to the power x",
                            reals().within(1.1, std::exp2),
                            derivative([](A g, A, A y) { return g * y * 0.69314718055994530942; })};
const ElementwiseOp expm1_op{map<"expm1">, DtypeRule::inexact, "exp(x) - 1, exact where x is near 0",
                             reals().complexes(0.3, 0.9).within(1.1, std::expm1),
                             derivative([](A g, A, A y) { return g * (y + 1); })};
const ElementwiseOp log_op{map<"log">, DtypeRule::inexact, "natural logarithm",
                           reals(0.3, 3).complexes(0.3, 0.9).within(3.5, std::log, 1.1),
                           derivative([](A g, A x, A) { return g / x; })};
const ElementwiseOp log2_op{map<"log2">, DtypeRule::floating, "logarithm to base 2",
                            reals(0.3, 3).within(3.5, std::log2, 1.1),
                            derivative([](A g, A x, A) { return g / (x * 0.69314718055994530942); })};
const ElementwiseOp log10_op{map<"log10">, DtypeRule::floating, "logarithm to base 10",
                             reals(0.3, 3).within(1.1, std::log10),
                             derivative([](A g, A x, A) { return g / (x * 2.30258509299404568402); })};
const ElementwiseOp log1p_op{map<"log1p">, DtypeRule::inexact, "log(1 + x), exact where x is near 0",
                             reals(-0.6, 2).complexes(0.3, 0.9).within(1.1, std::log1p),
                             derivative([](A g, A x, A) { return g / (x + 1); })};

const ElementwiseOp sin_op{map<"sin">, DtypeRule::inexact, "sine",
                           reals(-3, 3).complexes().within(3.5, std::sin, 1.1),
                           derivative([](A g, A x, A) { return g * cos(x); })};
const ElementwiseOp cos_op{map<"cos">, DtypeRule::inexact, "cosine",
                           reals(-3, 3).complexes().within(3.5, std::cos, 1.1),
                           derivative([](A g, A x, A) { return -g * sin(x); })};
const ElementwiseOp tan_op{map<"tan">, DtypeRule::inexact, "tangent",
                           reals(-1.2, 1.2).complexes(0.3, 0.9).within(3.5, std::tan, 1.1),
                           derivative([](A g, A, A y) { return g * (1 + y * y); })};
const ElementwiseOp asin_op{map<"asin">, DtypeRule::inexact, "angle whose sine is x",
                            reals(-0.8, 0.8).within(3.5, std::asin, 1.1),
                            derivative([](A g, A x, A) { return g / sqrt(1 - x * x); })};
const ElementwiseOp acos_op{map<"acos">, DtypeRule::inexact, "angle whose cosine is x",
                            reals(-0.8, 0.8).within(3.5, std::acos, 1.1),
                            derivative([](A g, A x, A) { return -g / sqrt(1 - x * x); })};
const ElementwiseOp atan_op{map<"atan">, DtypeRule::inexact, "angle whose tangent is x",
                            reals().complexes(0.3, 0.9).within(3.5, std::atan, 1.1),
                            derivative([](A g, A x, A) { return g / (1 + x * x); })};
const ElementwiseOp sinh_op{map<"sinh">, DtypeRule::inexact, "hyperbolic sine",
                            reals().complexes().within(3.5, std::sinh, 2),
                            derivative([](A g, A x, A) { return g * cosh(x); })};
const ElementwiseOp cosh_op{map<"cosh">, DtypeRule::inexact, "hyperbolic cosine",
                            reals().complexes().within(3.5, std::cosh, 2),
                            derivative([](A g, A x, A) { return g * sinh(x); })};
const ElementwiseOp tanh_op{map<"tanh">, DtypeRule::inexact, "hyperbolic tangent",
                            reals().complexes().within(3.5, std::tanh, 1.1),
                            derivative([](A g, A, A y) { return g * (1 - y * y); })};
const ElementwiseOp asinh_op{map<"asinh">, DtypeRule::inexact, "inverse hyperbolic sine",
                             reals().complexes(0.3, 0.9).within(1.1, std::asinh),
                             derivative([](A g, A x, A) { return g / sqrt(x * x + 1); })};
const ElementwiseOp acosh_op{map<"acosh">, DtypeRule::inexact, "inverse hyperbolic cosine",
                             reals(1.3, 3).within(1.1, std::acosh),
                             derivative([](A g, A x, A) { return g / (sqrt(x - 1) * sqrt(x + 1)); })};
const ElementwiseOp atanh_op{map<"atanh">, DtypeRule::inexact, "inverse hyperbolic tangent",
                             reals(-0.8, 0.8).within(1.1, std::atanh),
                             derivative([](A g, A x, A) { return g / (1 - x * x); })};

const ElementwiseOp erf_op{map<"erf">, DtypeRule::floating, "error function", reals().within(2, std::erf),
                           derivative([](A g, A x, A) { return g * exp(-x * x) * 1.12837916709551257390; })};
const ElementwiseOp erfc_op{map<"erfc">, DtypeRule::floating, "1 - erf(x), exact where erf(x) is near 1",
                            reals().within(2, std::erfc), derivative([](A g, A x, A) {
                              return -g * exp(-x * x) * 1.12837916709551257390;
                            })};
const ElementwiseOp erf_inv_op{
    map<"erf_inv">, DtypeRule::floating, "y with erf(y) = x", reals(-0.8, 0.8),
    derivative([](A g, A, A y) { return g * exp(y * y) * 0.88622692545275801365; })};
const ElementwiseOp lgamma_op{map<"lgamma">, DtypeRule::floating, "logarithm of |gamma(x)|", reals(0.4, 4),
                              derivative([](A g, A x, A) { return g * digamma(x); })};
const ElementwiseOp digamma_op{map<"digamma">, DtypeRule::floating, "derivative of lgamma", reals(0.4, 4),
                               derivative([](A g, A x, A) { return g * polygamma(1, x); })};
const ElementwiseOp sqrt_op{map<"sqrt">, DtypeRule::inexact, "square root",
                            reals(0.3, 3).complexes(0.3, 0.9).within(1, std::sqrt),
                            derivative([](A g, A, A y) { return g * 0.5 / y; })};
const ElementwiseOp cbrt_op{map<"cbrt">, DtypeRule::floating, "cube root",
                            reals(0.3, 3).within(1.1, std::cbrt),
                            derivative([](A g, A, A y) { return g / (3 * y * y); })};
const ElementwiseOp rsqrt_op{
    map<"rsqrt">, DtypeRule::inexact, "1 / sqrt(x)",
    reals(0.3, 3).complexes(0.3, 0.9).within(1.5, [](long double x) { return 1 / std::sqrt(x); }),
    derivative([](A g, A x, A y) { return g * -0.5 * y / x; })};

const ElementwiseOp sigmoid_op{map<"sigmoid">, DtypeRule::floating, "1 / (1 + exp(-x))",
                               reals(-3, 3).within(2.5, [](long double x) { return 1 / (1 + std::exp(-x)); }),
                               derivative([](A g, A, A y) { return g * y * (1 - y); })};
// The derivative tests the result, not the operand, so that the operand need not be kept for the backward
// pass.
const ElementwiseOp relu_op{map<"relu">, DtypeRule::ordered, "max(x, 0); NaN stays", reals(),
                            derivative([](A g, A, A y) { return where(y > 0, g, zeros_like(g)); })};
const ElementwiseOp silu_op{
    map<"silu">, DtypeRule::floating, "x sigmoid(x)", reals(-3, 3),
    derivative([](A g, A x, A) { return g * (sigmoid(x) * (1 + x * (1 - sigmoid(x)))); })};
const ElementwiseOp softplus_op{
    map<"softplus">, DtypeRule::floating, "log(1 + exp(x))",
    reals(-3, 3).within(3,
                        [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }),
    derivative([](A g, A x, A) { return g * sigmoid(x); })};
// The derivative by the product rule on u = sqrt(2/pi) (x + 0.044715 x^3).
const ElementwiseOp gelu_op{
    map<"gelu">, DtypeRule::floating, "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2", reals(-3, 3),
    derivative([](A g, A x, A) {
      const Array x2 = x * x, t = tanh(0.79788456080286535588 * x * (1 + 0.044715 * x2));
      return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286535588 * (1 + 0.134145 * x2));
    })};

}  // namespace

Array exp(const Operand& x) { return exp_op({x}); }
Array exp2(const Operand& x) {
  const Call call("exp2", x.where);

  return is_complex(x.array.dtype()) ? exp(0.69314718055994530942 * x.array) : exp2_op({x});
}
Array expm1(const Operand& x) { return expm1_op({x}); }
Array log(const Operand& x) { return log_op({x}); }
Array log2(const Operand& x) {
  const Call call("log2", x.where);

  return is_complex(x.array.dtype()) ? log(x) * 1.44269504088896340736 : log2_op({x});
}
Array log10(const Operand& x) {
  const Call call("log10", x.where);

  return is_complex(x.array.dtype()) ? log(x) * 0.43429448190325182765 : log10_op({x});
}
Array log1p(const Operand& x) { return log1p_op({x}); }
Array sin(const Operand& x) { return sin_op({x}); }
Array cos(const Operand& x) { return cos_op({x}); }
Array tan(const Operand& x) { return tan_op({x}); }
Array asin(const Operand& x) { return asin_op({x}); }
Array acos(const Operand& x) { return acos_op({x}); }
Array atan(const Operand& x) { return atan_op({x}); }
Array sinh(const Operand& x) { return sinh_op({x}); }
Array cosh(const Operand& x) { return cosh_op({x}); }
Array tanh(const Operand& x) { return tanh_op({x}); }
Array asinh(const Operand& x) { return asinh_op({x}); }
Array acosh(const Operand& x) { return acosh_op({x}); }
Array atanh(const Operand& x) { return atanh_op({x}); }
Array erf(const Operand& x) { return erf_op({x}); }
Array erfc(const Operand& x) { return erfc_op({x}); }
Array erf_inv(const Operand& x) { return erf_inv_op({x}); }
Array lgamma(const Operand& x) { return lgamma_op({x}); }
Array digamma(const Operand& x) { return digamma_op({x}); }
Array sqrt(const Operand& x) { return sqrt_op({x}); }
Array cbrt(const Operand& x) { return cbrt_op({x}); }
Array rsqrt(const Operand& x) { return rsqrt_op({x}); }
Array sigmoid(const Operand& x) { return sigmoid_op({x}); }
Array relu(const Operand& x) { return relu_op({x}); }
Array silu(const Operand& x) { return silu_op({x}); }
Array softplus(const Operand& x) { return softplus_op({x}); }
Array gelu(const Operand& x) { return gelu_op({x}); }

}  // namespace tessera
