/// @file
/// Numerical functions along axes: derivatives and integrals of samples, convolutions, products, windows,
/// polynomials.
///
/// Dtypes, shardings, communication and errors are those of the functions that they are composed of:
/// elementwise functions, slices and products. Along a split axis neighbours exchange the slices that the
/// formula needs (one slice for gradient and trapezoid, the taps for convolve); sums take one all-reduce. Not
/// collective: every function here records. Errors are raised on every rank when recorded.
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

/// The derivative along an axis of samples at distance `spacing`: central differences, one-sided ones of
/// order `edge_order`, 1 or 2, at the ends. ShapeError for an axis of no more samples than that order.
[[nodiscard]] Array gradient(const Operand& x, int axis, double spacing = 1, int edge_order = 1);
/// The same of samples at coordinates that need not be equally far apart, 1-D, one for each sample:
/// differences of second order inside. ShapeError for another number of coordinates.
[[nodiscard]] Array gradient(const Operand& x, const Operand& coordinates, int axis = -1, int edge_order = 1);
/// The derivatives along each axis.
[[nodiscard]] std::vector<Array> gradient(const Operand& x, double spacing = 1, int edge_order = 1);
/// The integral along an axis by the trapezoidal rule, of samples at distance `dx`.
[[nodiscard]] Array trapezoid(const Operand& y, double dx = 1, int axis = -1);
/// The integral of samples at the points x: 1-D, or of y's shape.
[[nodiscard]] Array trapezoid(const Operand& y, const Operand& x, int axis = -1);
/// @}

/// @name Convolution and products
/// @{

/// The convolution of two 1-D arrays: "full" (n + m - 1 elements), "same" (the length of the longer one) or
/// "valid" (where they overlap completely). The shorter one is replicated. ShapeError unless both are 1-D and
/// nonempty, ArgumentError for another mode.
[[nodiscard]] Array convolve(const Operand& a, const Operand& v, const std::string& mode = "full");
/// sum of a[n + k] conj(v[n]), as numpy.correlate; otherwise as convolve.
[[nodiscard]] Array correlate(const Operand& a, const Operand& v, const std::string& mode = "valid");
/// The Kronecker product: each element of a times all of b.
[[nodiscard]] Array kron(const Operand& a, const Operand& b);
/// The vector product along the last axis, of extent 3 in both.
[[nodiscard]] Array cross(const Operand& a, const Operand& b);
/// sum(conj(a) b) along an axis.
[[nodiscard]] Array vecdot(const Operand& a, const Operand& b, int axis = -1);
/// @}

/// @name Ranges
/// Uncommitted: each rank computes only its block.
/// @{

/// base to the power of linspace(start, stop, num).
[[nodiscard]] Array logspace(double start, double stop, std::int64_t num = 50, double base = 10,
                             Dtype dtype = float32,
                             std::source_location where = std::source_location::current());
/// Values from start to stop with a constant ratio. ArgumentError unless both are nonzero and have one sign.
[[nodiscard]] Array geomspace(double start, double stop, std::int64_t num = 50, Dtype dtype = float32,
                              std::source_location where = std::source_location::current());
/// @}

/// @name Windows
/// n values, symmetric, float32 by default.
/// @{

/// A triangle with zeros at its ends.
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
/// The m-th integral, with constant of integration 0.
[[nodiscard]] Array polyint(const Operand& coefficients, int m = 1);
/// The polynomial of this degree that fits y at x best, by least squares (linalg::lstsq of scaled powers).
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
/// Replaces NaN and infinities; the infinities by the dtype's largest numbers unless given.
[[nodiscard]] Array nan_to_num(const Operand& x, double nan = 0, std::optional<double> posinf = {},
                               std::optional<double> neginf = {});
/// Converts radians to degrees.
[[nodiscard]] Array rad2deg(const Operand& x);
/// Converts degrees to radians.
[[nodiscard]] Array deg2rad(const Operand& x);
/// @}

}  // namespace tessera
