/// @file
/// Elementwise ops: operators, arithmetic, functions of mathematics, comparison, logic, selection.
///
/// **Shapes.** Operands broadcast as in NumPy; the result has the common shape.
///
/// **Dtypes.** Promotion is JAX's: int32 + float32 is float32, uint8 + int8 is int16, uint64 + int64 is
/// float32. A plain number is weakly typed: x + 1 keeps x's dtype, an integer x + 2.5 is float32. bool counts
/// as int32 for ops without a meaning for it. Mathematical functions, and `/`, convert integers to float32.
/// bfloat16 and float16 keep their dtype with integers and plain numbers; combined with each other they give
/// float32. Every op widens them to float32 (exact) and rounds its result to nearest even; in ops that run in
/// one pass this happens in registers.
///
/// **Sharding.** The result is split as the operands are. Operands that are split alike move nothing; if they
/// differ, the operands are moved that need fewer bytes, decided from shapes alone (ties: the first operand
/// stays). An uncommitted operand takes the layout of the others. Blocks may be uneven or empty.
///
/// **Communication.** Not collective: every function here records. Chains of them run as one pass over the
/// block when a value is requested.
///
/// **Numbers.** Integers wrap around. Division of integers by 0 gives 0 in floor_divide and remainder, and
/// the most negative number divided by -1 is itself; nothing traps. NaN in any operand gives NaN, also in
/// maximum, minimum and clip. + - * / and sqrt of real numbers are rounded correctly (IEEE 754) and the same
/// on every machine. Errors of the other functions are given in ulp (units in the last place of the result),
/// for real float32 and float64 over the whole range, as measured by tests/kernels; SLEEF computes most of
/// them. TESSERA_MATH=precise reduces 3.5 ulp to 1.1 (2 for sinh and cosh, 1.5 for atan2), in two to three
/// times the time.
///
/// **Errors.** ShapeError for shapes that do not broadcast, DtypeError for a dtype that an op cannot take
/// (complex numbers have no order), ShardingError for committed operands on different devices,
/// ArgumentError for a deleted or empty handle. All are raised on every rank when recorded.
#pragma once
#include <tessera/array.hpp>

namespace tessera {

/// @name Operators
/// Each is the function of that name below.
/// @{

/// negative(x).
[[nodiscard]] Array operator-(const Operand& x);
/// logical_not(x).
[[nodiscard]] Array operator!(const Array& x);
/// bitwise_invert(x).
[[nodiscard]] Array operator~(const Operand& x);
/// add(a, b).
[[nodiscard]] Array operator+(const Operand& a, const Operand& b);
/// subtract(a, b).
[[nodiscard]] Array operator-(const Operand& a, const Operand& b);
/// multiply(a, b); the product of matrices is matmul.
[[nodiscard]] Array operator*(const Operand& a, const Operand& b);
/// divide(a, b): float32 for integers, as in Python.
[[nodiscard]] Array operator/(const Operand& a, const Operand& b);
/// remainder(a, b): has the sign of b, as in Python.
[[nodiscard]] Array operator%(const Operand& a, const Operand& b);
/// equal(a, b): elementwise; allclose gives one answer.
[[nodiscard]] Array operator==(const Operand& a, const Operand& b);
/// not_equal(a, b).
[[nodiscard]] Array operator!=(const Operand& a, const Operand& b);
/// less(a, b).
[[nodiscard]] Array operator<(const Operand& a, const Operand& b);
/// less_equal(a, b).
[[nodiscard]] Array operator<=(const Operand& a, const Operand& b);
/// greater(a, b).
[[nodiscard]] Array operator>(const Operand& a, const Operand& b);
/// greater_equal(a, b).
[[nodiscard]] Array operator>=(const Operand& a, const Operand& b);
/// bitwise_and(a, b); for bool the logical and.
[[nodiscard]] Array operator&(const Operand& a, const Operand& b);
/// bitwise_or(a, b); for bool the logical or.
[[nodiscard]] Array operator|(const Operand& a, const Operand& b);
/// bitwise_xor(a, b); for bool the exclusive or.
[[nodiscard]] Array operator^(const Operand& a, const Operand& b);
/// a = add(a, b): the handle gets a new value; other handles on the old one keep it.
Array& operator+=(Array& a, const Operand& b);
/// a = subtract(a, b): the handle gets a new value; other handles on the old one keep it.
Array& operator-=(Array& a, const Operand& b);
/// a = multiply(a, b): the handle gets a new value; other handles on the old one keep it.
Array& operator*=(Array& a, const Operand& b);
/// a = divide(a, b): the handle gets a new value; other handles on the old one keep it.
Array& operator/=(Array& a, const Operand& b);
/// a = remainder(a, b): the handle gets a new value; other handles on the old one keep it.
inline Array& operator%=(Array& a, const Operand& b) { return a = a % b; }
/// a = a & b: the handle gets a new value; other handles on the old one keep it.
inline Array& operator&=(Array& a, const Operand& b) { return a = a & b; }
/// a = a | b: the handle gets a new value; other handles on the old one keep it.
inline Array& operator|=(Array& a, const Operand& b) { return a = a | b; }
/// a = a ^ b: the handle gets a new value; other handles on the old one keep it.
inline Array& operator^=(Array& a, const Operand& b) { return a = a ^ b; }
/// @}

/// @name Arithmetic
/// @{

/// a + b; for bool the logical or.
[[nodiscard]] Array add(const Operand& a, const Operand& b);
/// a - b; not for two bools: a ^ b is true where they differ.
[[nodiscard]] Array subtract(const Operand& a, const Operand& b);
/// a * b; for bool the logical and.
[[nodiscard]] Array multiply(const Operand& a, const Operand& b);
/// a / b, true division: integers become float32, x / 0 is an infinity or NaN.
[[nodiscard]] Array divide(const Operand& a, const Operand& b);
/// The quotient rounded down, -7 // 2 = -4. Integers stay integers, x // 0 is 0; floats give an infinity or
/// NaN. Not for complex numbers.
[[nodiscard]] Array floor_divide(const Operand& a, const Operand& b);
/// a - b * floor(a / b): has the sign of b (Python, numpy.remainder). For b = 0 integers give 0, floats NaN.
[[nodiscard]] Array remainder(const Operand& a, const Operand& b);
/// a to the power b, 1.1 ulp. For integers by repeated squaring, wrapping around; a negative exponent gives
/// 0, except for the bases 1 and -1; as a plain number it is refused.
[[nodiscard]] Array power(const Operand& a, const Operand& b);
/// power(a, b) under the name of the C++ library.
[[nodiscard]] inline Array pow(const Operand& a, const Operand& b) { return power(a, b); }
/// -x; for unsigned integers modulo 2^bits. Not for bool.
[[nodiscard]] Array negative(const Operand& x);
/// x itself.
[[nodiscard]] Array positive(const Operand& x);
/// |x|; for complex numbers the modulus, a real array. The most negative integer is unchanged.
[[nodiscard]] Array abs(const Operand& x);
/// -1, 0 or 1; for a complex number z / |z|, 0 at 0; NaN for NaN.
[[nodiscard]] Array sign(const Operand& x);
/// x * x.
[[nodiscard]] Array square(const Operand& x);
/// Square root: NaN for negative numbers; integers become float32. Correctly rounded.
[[nodiscard]] Array sqrt(const Operand& x);
/// Cube root, also of negative numbers; 1.1 ulp. Real.
[[nodiscard]] Array cbrt(const Operand& x);
/// 1 / sqrt(x), 1.5 ulp.
[[nodiscard]] Array rsqrt(const Operand& x);
/// 1 / x; integers become float32.
[[nodiscard]] Array reciprocal(const Operand& x);
/// The largest integer not above x. Integers are unchanged.
[[nodiscard]] Array floor(const Operand& x);
/// The smallest integer not below x. Integers are unchanged.
[[nodiscard]] Array ceil(const Operand& x);
/// The nearest integer, ties to even; applied to both parts of complex numbers.
[[nodiscard]] Array round(const Operand& x);
/// x without its fraction. Integers are unchanged.
[[nodiscard]] Array trunc(const Operand& x);
/// The larger element; NaN if either is NaN. A gradient is shared at a tie.
[[nodiscard]] Array maximum(const Operand& a, const Operand& b);
/// The smaller element; NaN if either is NaN. A gradient is shared at a tie.
[[nodiscard]] Array minimum(const Operand& a, const Operand& b);
/// sqrt(a^2 + b^2) without intermediate overflow, 1.5 ulp. Real.
[[nodiscard]] Array hypot(const Operand& a, const Operand& b);
/// |a| with the sign of b. Real.
[[nodiscard]] Array copysign(const Operand& a, const Operand& b);
/// The next number after a towards b. Real; has no derivative.
[[nodiscard]] Array nextafter(const Operand& a, const Operand& b);
/// minimum(maximum(x, lo), hi): hi where lo > hi. Not for complex numbers.
[[nodiscard]] Array clip(const Operand& x, const Operand& lo, const Operand& hi);
/// Bounded from one side: maximum(x, lo), or minimum(x, hi).
[[nodiscard]] Array clip(const Operand& x, const Operand& lo, NoneType);
[[nodiscard]] Array clip(const Operand& x, NoneType, const Operand& hi);
/// @}

/// @name Exponentials and logarithms
/// 1.1 ulp (log and log2 3.5), also near 0 and at the ends of the range. For real operands a logarithm is NaN
/// below 0 and -inf at 0.
/// @{

/// e to the power x.
[[nodiscard]] Array exp(const Operand& x);
/// 2 to the power x.
[[nodiscard]] Array exp2(const Operand& x);
/// exp(x) - 1, accurate also for small x.
[[nodiscard]] Array expm1(const Operand& x);
/// Natural logarithm.
[[nodiscard]] Array log(const Operand& x);
/// Logarithm to base 2.
[[nodiscard]] Array log2(const Operand& x);
/// Logarithm to base 10.
[[nodiscard]] Array log10(const Operand& x);
/// log(1 + x), accurate also for small x.
[[nodiscard]] Array log1p(const Operand& x);
/// log(exp(a) + exp(b)) without overflow; 2 ulp if a and b have one sign. Real.
[[nodiscard]] Array logaddexp(const Operand& a, const Operand& b);
/// @}

/// @name Trigonometric and hyperbolic functions
/// Angles are in radians, of any size. 3.5 ulp; asinh, acosh and atanh 1.1. NaN outside of the domain.
/// Complex operands are accepted, except by atan2.
/// @{

/// Sine.
[[nodiscard]] Array sin(const Operand& x);
/// Cosine.
[[nodiscard]] Array cos(const Operand& x);
/// Tangent.
[[nodiscard]] Array tan(const Operand& x);
/// Inverse sine, for x in [-1, 1].
[[nodiscard]] Array asin(const Operand& x);
/// Inverse cosine, for x in [-1, 1].
[[nodiscard]] Array acos(const Operand& x);
/// Inverse tangent.
[[nodiscard]] Array atan(const Operand& x);
/// The angle of the point (b, a): atan(a / b) in the right quadrant.
[[nodiscard]] Array atan2(const Operand& a, const Operand& b);
/// Hyperbolic sine.
[[nodiscard]] Array sinh(const Operand& x);
/// Hyperbolic cosine.
[[nodiscard]] Array cosh(const Operand& x);
/// Hyperbolic tangent.
[[nodiscard]] Array tanh(const Operand& x);
/// Inverse hyperbolic sine.
[[nodiscard]] Array asinh(const Operand& x);
/// Inverse hyperbolic cosine, for x >= 1.
[[nodiscard]] Array acosh(const Operand& x);
/// Inverse hyperbolic tangent, for x in [-1, 1].
[[nodiscard]] Array atanh(const Operand& x);
/// @}

/// @name Special functions
/// Functions of real numbers.
/// @{

/// Error function, 2 ulp.
[[nodiscard]] Array erf(const Operand& x);
/// 1 - erf(x), accurate also for large x; 2 ulp.
[[nodiscard]] Array erfc(const Operand& x);
/// The inverse of erf: infinities at -1 and 1, NaN outside; 4 ulp.
[[nodiscard]] Array erf_inv(const Operand& x);
/// log |gamma(x)|, 8 ulp away from its roots; infinite at 0, -1, -2, ...
[[nodiscard]] Array lgamma(const Operand& x);
/// The derivative of lgamma; -inf at 0, NaN at -1, -2, ...
[[nodiscard]] Array digamma(const Operand& x);
/// @}

/// @name Activations
/// Functions of real numbers.
/// @{

/// 1 / (1 + exp(-x)), 2.5 ulp.
[[nodiscard]] Array sigmoid(const Operand& x);
/// maximum(x, 0); integers stay integers; its derivative at 0 is 0.
[[nodiscard]] Array relu(const Operand& x);
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2: jax.nn.gelu's default.
[[nodiscard]] Array gelu(const Operand& x);
/// x sigmoid(x), also called swish.
[[nodiscard]] Array silu(const Operand& x);
/// log(1 + exp(x)) without overflow, 3 ulp.
[[nodiscard]] Array softplus(const Operand& x);
/// @}

/// @name Complex numbers
/// @{

/// The real part; a real array is returned unchanged.
[[nodiscard]] Array real(const Operand& x);
/// The imaginary part; zeros for a real array.
[[nodiscard]] Array imag(const Operand& x);
/// The conjugate; a real array is returned unchanged.
[[nodiscard]] Array conj(const Operand& x);
/// re + i im: complex64 from float32, complex128 from float64. Real operands.
[[nodiscard]] Array make_complex(const Operand& re, const Operand& im);
/// @}

/// @name Comparison
/// Results are bool. NaN compares unequal, and neither less nor greater. Complex numbers are ordered by real
/// part, then imaginary part (NumPy).
/// @{

/// a == b.
[[nodiscard]] Array equal(const Operand& a, const Operand& b);
/// a != b.
[[nodiscard]] Array not_equal(const Operand& a, const Operand& b);
/// a < b.
[[nodiscard]] Array less(const Operand& a, const Operand& b);
/// a <= b.
[[nodiscard]] Array less_equal(const Operand& a, const Operand& b);
/// a > b.
[[nodiscard]] Array greater(const Operand& a, const Operand& b);
/// a >= b.
[[nodiscard]] Array greater_equal(const Operand& a, const Operand& b);
/// Whether an element is NaN; false for integers.
[[nodiscard]] Array isnan(const Operand& x);
/// Whether an element is neither NaN nor infinite.
[[nodiscard]] Array isfinite(const Operand& x);
/// Whether an element is infinite.
[[nodiscard]] Array isinf(const Operand& x);
/// |a - b| <= atol + rtol |b| (numpy.isclose). Infinities are close to themselves; NaN is close to NaN if
/// equal_nan.
[[nodiscard]] Array isclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
                            bool equal_nan = false);
/// Whether all elements are close: one bool on every rank, by an all-reduce of it if the operands are split.
[[nodiscard]] Array allclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
                             bool equal_nan = false);
/// @}

/// @name Logic and bits
/// Logical functions take any dtype (nonzero values are true, also NaN) and give bool; bit functions take
/// integers and, except for the shifts, bool.
/// @{

/// Whether both are true.
[[nodiscard]] Array logical_and(const Operand& a, const Operand& b);
/// Whether at least one is true.
[[nodiscard]] Array logical_or(const Operand& a, const Operand& b);
/// Whether exactly one is true.
[[nodiscard]] Array logical_xor(const Operand& a, const Operand& b);
/// Whether x is 0.
[[nodiscard]] Array logical_not(const Operand& x);
/// The bits set in both.
[[nodiscard]] Array bitwise_and(const Operand& a, const Operand& b);
/// The bits set in at least one.
[[nodiscard]] Array bitwise_or(const Operand& a, const Operand& b);
/// The bits set in exactly one.
[[nodiscard]] Array bitwise_xor(const Operand& a, const Operand& b);
/// All bits flipped; for bool the logical not.
[[nodiscard]] Array bitwise_invert(const Operand& x);
/// a shifted left by b bits; 0 if b is not in [0, width).
[[nodiscard]] Array bitwise_left_shift(const Operand& a, const Operand& b);
/// a shifted right by b bits, keeping the sign; 0 or -1 if b is not in [0, width).
[[nodiscard]] Array bitwise_right_shift(const Operand& a, const Operand& b);
/// @}

/// @name Selection and conversion
/// @{

/// a if the condition is nonzero, else b. Both are computed; only the selected one gets a gradient.
[[nodiscard]] Array where(const Operand& condition, const Operand& a, const Operand& b);
/// x converted to another dtype. Floats are truncated towards 0 to integers; values that do not fit become
/// the nearest end of the range, NaN becomes 0. Integers keep their low bits. Complex numbers lose the
/// imaginary part. bool is true for nonzero values. x itself if it has the dtype.
[[nodiscard]] Array astype(const Operand& x, Dtype dtype);
/// A new array with x's values, in separate memory.
[[nodiscard]] Array copy(const Operand& x);
/// @}

/// bitwise_left_shift(a, b): a << 1 for integers.
[[nodiscard]] inline Array operator<<(const Operand& a, const Operand& b) { return bitwise_left_shift(a, b); }
/// bitwise_right_shift(a, b).
[[nodiscard]] inline Array operator>>(const Operand& a, const Operand& b) {
  return bitwise_right_shift(a, b);
}
/// a = a << b: the handle gets a new value; other handles on the old one keep it.
inline Array& operator<<=(Array& a, const Operand& b) { return a = a << b; }
/// a = a >> b: the handle gets a new value; other handles on the old one keep it.
inline Array& operator>>=(Array& a, const Operand& b) { return a = a >> b; }

}  // namespace tessera
