// Transcendental functions and the activations of neural networks. vjp rules write g for the cotangent, x
// for the operand, y for the result.
#include "ops/elementwise/define.hpp"
#include "ops/functions.hpp"

namespace tessera {
namespace {

const Array& g(const VjpArgs& v) { return v.cotangents[0]; }
const Array& x(const VjpArgs& v) { return v.in[0]; }
const Array& y(const VjpArgs& v) { return v.out[0]; }

TESSERA_ROW(exp, elementwise("exp", DtypeRule::inexact,
                             [](const VjpArgs& v) -> Cotangents { return {g(v) * y(v)}; }))
TESSERA_ROW(exp2, elementwise("exp2", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) * y(v) * 0.69314718055994530942};
            }))
TESSERA_ROW(expm1, elementwise("expm1", DtypeRule::inexact,
                               [](const VjpArgs& v) -> Cotangents { return {g(v) * (y(v) + 1)}; }))
TESSERA_ROW(log, elementwise("log", DtypeRule::inexact,
                             [](const VjpArgs& v) -> Cotangents { return {g(v) / x(v)}; }))
TESSERA_ROW(log2, elementwise("log2", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) / (x(v) * 0.69314718055994530942)};
            }))
TESSERA_ROW(log10, elementwise("log10", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) / (x(v) * 2.30258509299404568402)};
            }))
TESSERA_ROW(log1p, elementwise("log1p", DtypeRule::inexact,
                               [](const VjpArgs& v) -> Cotangents { return {g(v) / (x(v) + 1)}; }))
TESSERA_ROW(sin, elementwise("sin", DtypeRule::inexact,
                             [](const VjpArgs& v) -> Cotangents { return {g(v) * cos(x(v))}; }))
TESSERA_ROW(cos, elementwise("cos", DtypeRule::inexact,
                             [](const VjpArgs& v) -> Cotangents { return {-g(v) * sin(x(v))}; }))
TESSERA_ROW(tan, elementwise("tan", DtypeRule::inexact,
                             [](const VjpArgs& v) -> Cotangents { return {g(v) * (1 + y(v) * y(v))}; }))
TESSERA_ROW(asin, elementwise("asin", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) / sqrt(1 - x(v) * x(v))}; }))
TESSERA_ROW(acos, elementwise("acos", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {-g(v) / sqrt(1 - x(v) * x(v))}; }))
TESSERA_ROW(atan, elementwise("atan", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) / (1 + x(v) * x(v))}; }))
TESSERA_ROW(sinh, elementwise("sinh", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) * cosh(x(v))}; }))
TESSERA_ROW(cosh, elementwise("cosh", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) * sinh(x(v))}; }))
TESSERA_ROW(tanh, elementwise("tanh", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) * (1 - y(v) * y(v))}; }))
TESSERA_ROW(asinh, elementwise("asinh", DtypeRule::inexact,
                               [](const VjpArgs& v) -> Cotangents { return {g(v) / sqrt(x(v) * x(v) + 1)}; }))
TESSERA_ROW(acosh, elementwise("acosh", DtypeRule::inexact, [](const VjpArgs& v) -> Cotangents {
              return {g(v) / (sqrt(x(v) - 1) * sqrt(x(v) + 1))};
            }))
TESSERA_ROW(atanh, elementwise("atanh", DtypeRule::inexact,
                               [](const VjpArgs& v) -> Cotangents { return {g(v) / (1 - x(v) * x(v))}; }))
TESSERA_ROW(erf, elementwise("erf", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) * exp(-x(v) * x(v)) * 1.12837916709551257390};
            }))
TESSERA_ROW(erfc, elementwise("erfc", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {-g(v) * exp(-x(v) * x(v)) * 1.12837916709551257390};
            }))
TESSERA_ROW(erf_inv, elementwise("erf_inv", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) * exp(y(v) * y(v)) * 0.88622692545275801365};
            }))
TESSERA_ROW(lgamma, elementwise("lgamma", DtypeRule::floating,
                                [](const VjpArgs& v) -> Cotangents { return {g(v) * digamma(x(v))}; }))
TESSERA_ROW(digamma,
            elementwise_without_vjp("digamma", DtypeRule::floating, "the trigamma function is not provided"))
TESSERA_ROW(sqrt, elementwise("sqrt", DtypeRule::inexact,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) * 0.5 / y(v)}; }))
TESSERA_ROW(cbrt, elementwise("cbrt", DtypeRule::floating,
                              [](const VjpArgs& v) -> Cotangents { return {g(v) / (3 * y(v) * y(v))}; }))
TESSERA_ROW(rsqrt, elementwise("rsqrt", DtypeRule::inexact,
                               [](const VjpArgs& v) -> Cotangents { return {g(v) * -0.5 * y(v) / x(v)}; }))
TESSERA_ROW(sigmoid, elementwise("sigmoid", DtypeRule::floating,
                                 [](const VjpArgs& v) -> Cotangents { return {g(v) * y(v) * (1 - y(v))}; }))
// Asks the result, not the operand: what the operand was need not be kept for the backward pass.
TESSERA_ROW(relu, elementwise("relu", DtypeRule::ordered, [](const VjpArgs& v) -> Cotangents {
              return {where(y(v) > 0, g(v), zeros_like(g(v)))};
            }))
TESSERA_ROW(silu, elementwise("silu", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              return {g(v) * (sigmoid(x(v)) * (1 + x(v) * (1 - sigmoid(x(v)))))};
            }))
TESSERA_ROW(softplus, elementwise("softplus", DtypeRule::floating,
                                  [](const VjpArgs& v) -> Cotangents { return {g(v) * sigmoid(x(v))}; }))
// The tanh form; its derivative by the product rule on u = sqrt(2/pi) (x + 0.044715 x^3).
TESSERA_ROW(gelu, elementwise("gelu", DtypeRule::floating, [](const VjpArgs& v) -> Cotangents {
              const Array x2 = x(v) * x(v), t = tanh(0.79788456080286535588 * x(v) * (1 + 0.044715 * x2));
              return {g(v) * (0.5 * (1 + t) +
                              0.5 * x(v) * (1 - t * t) * 0.79788456080286535588 * (1 + 0.134145 * x2))};
            }))

}  // namespace

Array exp(const Operand& x) { return apply(exp_row(), {x}); }
Array exp2(const Operand& x) {
  return is_complex(x.array.dtype()) ? exp(Operand(0.69314718055994530942 * x.array, x.where))
                                     : apply(exp2_row(), {x});
}
Array expm1(const Operand& x) { return apply(expm1_row(), {x}); }
Array log(const Operand& x) { return apply(log_row(), {x}); }
Array log2(const Operand& x) {
  return is_complex(x.array.dtype()) ? Operand(log(x), x.where) * 1.44269504088896340736
                                     : apply(log2_row(), {x});
}
Array log10(const Operand& x) {
  return is_complex(x.array.dtype()) ? Operand(log(x), x.where) * 0.43429448190325182765
                                     : apply(log10_row(), {x});
}
Array log1p(const Operand& x) { return apply(log1p_row(), {x}); }
Array sin(const Operand& x) { return apply(sin_row(), {x}); }
Array cos(const Operand& x) { return apply(cos_row(), {x}); }
Array tan(const Operand& x) { return apply(tan_row(), {x}); }
Array asin(const Operand& x) { return apply(asin_row(), {x}); }
Array acos(const Operand& x) { return apply(acos_row(), {x}); }
Array atan(const Operand& x) { return apply(atan_row(), {x}); }
Array sinh(const Operand& x) { return apply(sinh_row(), {x}); }
Array cosh(const Operand& x) { return apply(cosh_row(), {x}); }
Array tanh(const Operand& x) { return apply(tanh_row(), {x}); }
Array asinh(const Operand& x) { return apply(asinh_row(), {x}); }
Array acosh(const Operand& x) { return apply(acosh_row(), {x}); }
Array atanh(const Operand& x) { return apply(atanh_row(), {x}); }
Array erf(const Operand& x) { return apply(erf_row(), {x}); }
Array erfc(const Operand& x) { return apply(erfc_row(), {x}); }
Array erf_inv(const Operand& x) { return apply(erf_inv_row(), {x}); }
Array lgamma(const Operand& x) { return apply(lgamma_row(), {x}); }
Array digamma(const Operand& x) { return apply(digamma_row(), {x}); }
Array sqrt(const Operand& x) { return apply(sqrt_row(), {x}); }
Array cbrt(const Operand& x) { return apply(cbrt_row(), {x}); }
Array rsqrt(const Operand& x) { return apply(rsqrt_row(), {x}); }
Array sigmoid(const Operand& x) { return apply(sigmoid_row(), {x}); }
Array relu(const Operand& x) { return apply(relu_row(), {x}); }
Array silu(const Operand& x) { return apply(silu_row(), {x}); }
Array softplus(const Operand& x) { return apply(softplus_row(), {x}); }
Array gelu(const Operand& x) { return apply(gelu_row(), {x}); }

}  // namespace tessera
