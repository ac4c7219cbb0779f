/// @file
/// Special functions, and functions of the parts of numbers: elementwise, with the contract of
/// ops/elementwise.hpp. Special functions are computed in double or wider, accurate to 1e-13 for float64
/// results except near a root. Those of gamma, beta and zeta are plain loops, slower than exp by an order of
/// magnitude or more.
#pragma once
#include <cstdint>
#include <source_location>
#include <utility>

#include <tessera/array.hpp>

namespace tessera {

/// @name Gamma and beta functions
/// For real numbers; NaN outside of the domain.
/// @{

/// The regularised lower incomplete gamma function P(a, x), a and x not negative. Has derivatives by both;
/// the one by a uses differences of extended precision, accurate to 1e-10 (jax.scipy.special.gammainc).
[[nodiscard]] Array igamma(const Operand& a, const Operand& x);
/// The upper one, Q = 1 - P, accurate where it is small.
[[nodiscard]] Array igammac(const Operand& a, const Operand& x);
/// The regularised incomplete beta function I_x(a, b) of positive a, b and x in [0, 1]. Has derivatives by
/// all three, those by a and b computed as igamma's.
[[nodiscard]] Array betainc(const Operand& a, const Operand& b, const Operand& x);
/// Hurwitz's zeta function, the sum of (q + k)^-s over k from 0, for s > 1; inf at 1 and for q = 0, -1, ...
/// Has the derivative by q; the one by s is taken to be 0.
[[nodiscard]] Array zeta(const Operand& s, const Operand& q);
/// The n-th derivative of digamma for an integer n; the derivative by n is taken to be 0.
[[nodiscard]] Array polygamma(const Operand& n, const Operand& x);
/// log |gamma(x)|: another name of lgamma.
[[nodiscard]] Array gammaln(const Operand& x);
/// The logarithm of the beta function.
[[nodiscard]] Array betaln(const Operand& a, const Operand& b);
/// @}

/// @name Modified Bessel functions of the first kind
/// Accurate to 2e-15 for float64, and to 0.51 units in the last place for float32.
/// @{

/// The modified Bessel function of the first kind of order 0.
[[nodiscard]] Array i0(const Operand& x);
/// The modified Bessel function of the first kind of order 1.
[[nodiscard]] Array i1(const Operand& x);
/// exp(-|x|) i0(x).
[[nodiscard]] Array i0e(const Operand& x);
/// exp(-|x|) i1(x).
[[nodiscard]] Array i1e(const Operand& x);
/// Kaiser's window of n values, i0(beta sqrt(1 - t^2)) / i0(beta).
[[nodiscard]] Array kaiser(std::int64_t n, double beta, Dtype dtype = float32,
                           std::source_location where = std::source_location::current());
/// @}

/// @name Parts of numbers
/// @{

/// The remainder with the sign of a (C's fmod, exact). Integers stay integers: 0 for b = 0. Floats: NaN for b
/// = 0. remainder has the sign of b.
[[nodiscard]] Array fmod(const Operand& a, const Operand& b);
/// The larger one; if one is NaN, the other.
[[nodiscard]] Array fmax(const Operand& a, const Operand& b);
/// The smaller one; if one is NaN, the other.
[[nodiscard]] Array fmin(const Operand& a, const Operand& b);
/// Whether the sign is negative, also for -0 and NaN.
[[nodiscard]] Array signbit(const Operand& x);
/// x 2^n, exact, for an integer n.
[[nodiscard]] Array ldexp(const Operand& x, const Operand& n);
/// {m, n} with x = m 2^n and |m| in [0.5, 1), or {x, 0} for 0, NaN and infinities; n is int32.
[[nodiscard]] std::pair<Array, Array> frexp(const Operand& x);
/// The greatest common divisor of |a| and |b|. Integers.
[[nodiscard]] Array gcd(const Operand& a, const Operand& b);
/// The least common multiple of |a| and |b|; wraps around. Integers.
[[nodiscard]] Array lcm(const Operand& a, const Operand& b);
/// The number of set bits. Integers.
[[nodiscard]] Array population_count(const Operand& x);
/// @}

}  // namespace tessera
