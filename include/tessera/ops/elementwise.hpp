// Elementwise ops: operators, arithmetic, functions of mathematics, comparison, logic, selection.
//
// Operands broadcast; dtypes promote as in JAX, and plain numbers are weakly typed: x + 1 keeps x's dtype. The
// result has the broadcast shape and its operands' sharding. Nothing moves when the operands are split alike;
// otherwise the one that is cheaper to move is.
#pragma once
#include <tessera/array.hpp>

namespace tessera {

// ---- operators ----
Array operator-(const Operand& x);
Array operator!(const Operand& x);
Array operator~(const Operand& x);
Array operator+(const Operand& a, const Operand& b);
Array operator-(const Operand& a, const Operand& b);
Array operator*(const Operand& a, const Operand& b);
Array operator/(const Operand& a, const Operand& b);
Array operator%(const Operand& a, const Operand& b);
Array operator==(const Operand& a, const Operand& b);
Array operator!=(const Operand& a, const Operand& b);
Array operator<(const Operand& a, const Operand& b);
Array operator<=(const Operand& a, const Operand& b);
Array operator>(const Operand& a, const Operand& b);
Array operator>=(const Operand& a, const Operand& b);
Array operator&(const Operand& a, const Operand& b);
Array operator|(const Operand& a, const Operand& b);
Array operator^(const Operand& a, const Operand& b);
Array& operator+=(Array& a, const Operand& b);
Array& operator-=(Array& a, const Operand& b);
Array& operator*=(Array& a, const Operand& b);
Array& operator/=(Array& a, const Operand& b);

// ---- arithmetic ----
Array add(const Operand& a, const Operand& b);
Array subtract(const Operand& a, const Operand& b);
Array multiply(const Operand& a, const Operand& b);
Array divide(const Operand& a, const Operand& b);
Array floor_divide(const Operand& a, const Operand& b);
Array remainder(const Operand& a, const Operand& b);
Array power(const Operand& a, const Operand& b);
Array negative(const Operand& x);
Array positive(const Operand& x);
Array abs(const Operand& x);
Array sign(const Operand& x);
Array square(const Operand& x);
Array sqrt(const Operand& x);
Array cbrt(const Operand& x);
Array rsqrt(const Operand& x);
Array reciprocal(const Operand& x);
Array floor(const Operand& x);
Array ceil(const Operand& x);
Array round(const Operand& x);
Array trunc(const Operand& x);
Array maximum(const Operand& a, const Operand& b);
Array minimum(const Operand& a, const Operand& b);
Array hypot(const Operand& a, const Operand& b);
Array copysign(const Operand& a, const Operand& b);
Array nextafter(const Operand& a, const Operand& b);
Array clip(const Operand& x, const Operand& lo, const Operand& hi);

// ---- exponentials and logarithms ----
Array exp(const Operand& x);
Array exp2(const Operand& x);
Array expm1(const Operand& x);
Array log(const Operand& x);
Array log2(const Operand& x);
Array log10(const Operand& x);
Array log1p(const Operand& x);
Array logaddexp(const Operand& a, const Operand& b);

// ---- trigonometric and hyperbolic functions ----
Array sin(const Operand& x);
Array cos(const Operand& x);
Array tan(const Operand& x);
Array asin(const Operand& x);
Array acos(const Operand& x);
Array atan(const Operand& x);
Array atan2(const Operand& a, const Operand& b);
Array sinh(const Operand& x);
Array cosh(const Operand& x);
Array tanh(const Operand& x);
Array asinh(const Operand& x);
Array acosh(const Operand& x);
Array atanh(const Operand& x);

// ---- special functions ----
Array erf(const Operand& x);
Array erfc(const Operand& x);
Array erf_inv(const Operand& x);
Array lgamma(const Operand& x);
Array digamma(const Operand& x);

// ---- activations ----
Array sigmoid(const Operand& x);
Array relu(const Operand& x);
Array gelu(const Operand& x);
Array silu(const Operand& x);
Array softplus(const Operand& x);

// ---- complex numbers ----
Array real(const Operand& x);
Array imag(const Operand& x);
Array conj(const Operand& x);
Array make_complex(const Operand& re, const Operand& im);

// ---- comparison ----
Array equal(const Operand& a, const Operand& b);
Array not_equal(const Operand& a, const Operand& b);
Array less(const Operand& a, const Operand& b);
Array less_equal(const Operand& a, const Operand& b);
Array greater(const Operand& a, const Operand& b);
Array greater_equal(const Operand& a, const Operand& b);
Array isnan(const Operand& x);
Array isfinite(const Operand& x);
Array isinf(const Operand& x);
Array isclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
Array allclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);  // one bool

// ---- logic and bits ----
Array logical_and(const Operand& a, const Operand& b);
Array logical_or(const Operand& a, const Operand& b);
Array logical_xor(const Operand& a, const Operand& b);
Array logical_not(const Operand& x);
Array bitwise_and(const Operand& a, const Operand& b);
Array bitwise_or(const Operand& a, const Operand& b);
Array bitwise_xor(const Operand& a, const Operand& b);
Array bitwise_invert(const Operand& x);
Array bitwise_left_shift(const Operand& a, const Operand& b);
Array bitwise_right_shift(const Operand& a, const Operand& b);

// ---- selection and conversion ----
Array where(const Operand& condition, const Operand& a, const Operand& b);
Array astype(const Operand& x, Dtype);
Array copy(const Operand& x);

}  // namespace tessera
