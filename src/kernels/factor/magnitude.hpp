// The magnitude of a matrix' elements. Matrices that are not finite, or whose pivots have no reciprocal, are
// found before factoring, so that the outcome does not depend on which implementation factors them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/factor/lapack_calls.hpp"

namespace tessera::kernels {

// The range of the elements' parts: real and imaginary parts count separately.
struct Magnitude {
  double largest = 0;  // infinite where a part is infinite or NaN
  double sum = 0;      // of the absolute values, while they are finite
  std::int64_t parts = 0;

  bool is_finite() const { return largest <= std::numeric_limits<double>::max(); }
  double mean() const { return parts == 0 ? 0 : sum / static_cast<double>(parts); }
  // The range after scale(values, count, exponent).
  Magnitude scaled(int exponent) const {
    return {std::scalbn(largest, exponent),
            std::scalbn(sum > std::numeric_limits<double>::max() ? largest : sum, exponent), parts};
  }
  void add(const float* values, std::int64_t count);
  void add(const double* values, std::int64_t count);
  template <class R> void add(const std::complex<R>* values, std::int64_t count) {
    add(reinterpret_cast<const R*>(values), 2 * count);
  }
};

// The power of two that scales a matrix with this largest part to a range in which pivots have reciprocals; 0
// if it is in that range. Scaling by it is exact.
template <class T> int exponent_to_scale(const Magnitude& of) {
  using R = real_of<T>;
  constexpr int digits = std::numeric_limits<R>::digits;
  constexpr double low = std::numeric_limits<R>::min_exponent + 2 * digits,
                   high = std::numeric_limits<R>::max_exponent - digits;
  if (of.largest == 0 || !of.is_finite()) return 0;
  const int exponent = std::ilogb(of.largest);
  return exponent < low || exponent > high ? -exponent : 0;
}
template <class T> void scale(T* values, std::int64_t count, int exponent) {
  using R = real_of<T>;
  auto* parts = reinterpret_cast<R*>(values);
  const std::int64_t all = count * (complex_type<T> ? 2 : 1);
  if (std::abs(exponent) < std::numeric_limits<R>::max_exponent - 2) {  // the factor is a normal number
    const R factor = std::scalbn(R(1), exponent);
    for (std::int64_t i = 0; i < all; ++i) parts[i] *= factor;
    return;
  }
  for (std::int64_t i = 0; i < all; ++i) parts[i] = std::scalbn(parts[i], exponent);
}

template <class T> void fill_nan(T* values, std::int64_t count) {
  auto* parts = reinterpret_cast<real_of<T>*>(values);
  std::fill_n(parts, count * (complex_type<T> ? 2 : 1), std::numeric_limits<real_of<T>>::quiet_NaN());
}

// Element i of a fixed vector w of random signs. |A^-1 w|_2 is about the Frobenius norm of A^-1: its mean
// square equals the norm's, and for one matrix in a dozen it is less than a tenth of the norm.
inline double random_sign(std::int64_t i) {
  std::uint64_t bits = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return (bits >> 63) != 0 ? -1 : 1;
}
// Estimates 1 / (|A| |A^-1|) of an n x n matrix A from its magnitude and that of the solution A^-1 w.
double estimated_rcond(std::int64_t n, const Magnitude& matrix, const Magnitude& solution);

}  // namespace tessera::kernels
