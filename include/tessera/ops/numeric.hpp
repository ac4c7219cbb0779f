/// @file
/// Numerical functions along axes: derivatives and integrals of samples, convolutions, products, windows,
/// polynomials.
///
/// Dtypes, shardings, communication and errors are those of what they are made of: elementwise functions,
/// slices and products. Of a split axis neighbours exchange what the formula reaches over (one slice for
/// gradient and trapezoid, the taps for convolve); sums are combined by one all-reduce. Not collective:
/// every function here records. Errors are raised on every rank when recorded.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// @name Samples of functions
/// @{

/// The derivative along an axis of samples `spacing` apart: central differences, one-sided ones at the ends.
/// ShapeError for an axis of less than two samples.
[[nodiscard]] Array gradient(const Operand& x, int axis, double spacing = 1);
/// Along each axis.
[[nodiscard]] std::vector<Array> gradient(const Operand& x, double spacing = 1);
/// The integral along an axis by the trapezoidal rule, of samples `dx` apart.
[[nodiscard]] Array trapezoid(const Operand& y, double dx = 1, int axis = -1);
/// The integral of samples at the points x: 1-D, or of y's shape.
[[nodiscard]] Array trapezoid(const Operand& y, const Operand& x, int axis = -1);
/// @}

/// @name Convolution and products
/// @{

/// The convolution of two 1-D arrays: "full" (n + m - 1 elements), "same" (as many as the longer one) or
/// "valid" (where they overlap altogether). The shorter one is made whole on every rank. ShapeError unless
/// both are 1-D and hold an element, ArgumentError for another mode.
[[nodiscard]] Array convolve(const Operand& a, const Operand& v, const std::string& mode = "full");
/// sum of a[n + k] conj(v[n]), as numpy.correlate; otherwise as convolve.
[[nodiscard]] Array correlate(const Operand& a, const Operand& v, const std::string& mode = "valid");
/// The Kronecker product: a's elements times the whole of b.
[[nodiscard]] Array kron(const Operand& a, const Operand& b);
/// The vector product along the last axis, of extent 3 in both.
[[nodiscard]] Array cross(const Operand& a, const Operand& b);
/// sum(conj(a) b) along an axis.
[[nodiscard]] Array vecdot(const Operand& a, const Operand& b, int axis = -1);
/// @}

/// @name Ranges
/// Uncommitted: each rank computes its block.
/// @{

/// base to the power of linspace(start, stop, num).
[[nodiscard]] Array logspace(double start, double stop, std::int64_t num = 50, double base = 10,
                             Dtype dtype = float32,
                             std::source_location where = std::source_location::current());
/// From start to stop by equal factors. ArgumentError unless both are not 0 and have one sign.
[[nodiscard]] Array geomspace(double start, double stop, std::int64_t num = 50, Dtype dtype = float32,
                              std::source_location where = std::source_location::current());
/// @}

/// @name Windows
/// n values, symmetric, float32 unless said otherwise.
/// @{

/// A triangle, 0 at its ends.
[[nodiscard]] Array bartlett(std::int64_t n, Dtype dtype = float32,
                             std::source_location where = std::source_location::current());
/// 0.42 - 0.5 cos + 0.08 cos 2.
[[nodiscard]] Array blackman(std::int64_t n, Dtype dtype = float32,
                             std::source_location where = std::source_location::current());
/// 0.54 - 0.46 cos.
[[nodiscard]] Array hamming(std::int64_t n, Dtype dtype = float32,
                            std::source_location where = std::source_location::current());
/// 0.5 - 0.5 cos.
[[nodiscard]] Array hanning(std::int64_t n, Dtype dtype = float32,
                            std::source_location where = std::source_location::current());
/// @}

/// @name Polynomials
/// Coefficients are 1-D, that of the highest power first (numpy.polyval).
/// @{

/// The values of a polynomial at x, by Horner's rule.
[[nodiscard]] Array polyval(const Operand& coefficients, const Operand& x);
/// The sum of two polynomials.
[[nodiscard]] Array polyadd(const Operand& a, const Operand& b);
/// Their difference.
[[nodiscard]] Array polysub(const Operand& a, const Operand& b);
/// Their product.
[[nodiscard]] Array polymul(const Operand& a, const Operand& b);
/// The m-th derivative.
[[nodiscard]] Array polyder(const Operand& coefficients, int m = 1);
/// The m-th integral that is 0 at 0.
[[nodiscard]] Array polyint(const Operand& coefficients, int m = 1);
/// The polynomial of a degree that is nearest to y at x, by least squares (linalg::lstsq of scaled powers).
/// ShapeError unless x and y are 1-D and of one size.
[[nodiscard]] Array polyfit(const Operand& x, const Operand& y, int degree);
/// @}

/// @name Elementwise
/// @{

/// The angle of a complex number, in (-pi, pi]; of a real one 0 or pi.
[[nodiscard]] Array angle(const Operand& x, bool degrees = false);
/// sin(pi x) / (pi x), 1 at 0.
[[nodiscard]] Array sinc(const Operand& x);
/// 0 below 0, `at_zero` at 0, 1 above it.
[[nodiscard]] Array heaviside(const Operand& x, const Operand& at_zero);
/// NaN and infinities replaced; unless given, the infinities by the dtype's largest numbers.
[[nodiscard]] Array nan_to_num(const Operand& x, double nan = 0, std::optional<double> posinf = {},
                               std::optional<double> neginf = {});
/// Degrees of radians.
[[nodiscard]] Array rad2deg(const Operand& x);
/// Radians of degrees.
[[nodiscard]] Array deg2rad(const Operand& x);
/// @}

}  // namespace tessera
