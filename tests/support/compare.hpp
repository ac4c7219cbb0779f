// Compares results with expected ones: shapes and dtypes exactly, values within a tolerance.
#pragma once
#include <gtest/gtest.h>

#include <tessera/ops.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

namespace tessera::test {

using Number = std::complex<double>;
enum class Scale { element, largest };  // the tolerance is relative to this, and at least to 1

inline bool is_nan(const Number& v) { return v != v; }
inline double size_of(const Number& v) { return std::isfinite(std::abs(v)) ? std::abs(v) : 0; }

inline void expect_close_numbers(const std::vector<Number>& got, const std::vector<Number>& wanted,
                                 double tolerance, const std::string& what, Scale scale = Scale::element) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  double largest = 1;
  if (scale == Scale::largest)
    for (const auto& v : wanted) largest = std::max(largest, size_of(v));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(std::abs(got[i] - wanted[i]) <= tolerance * std::max(largest, size_of(wanted[i])) ||
                got[i] == wanted[i] || (is_nan(got[i]) && is_nan(wanted[i])))
        << what << ": element " << i << " of " << got.size() << " is " << got[i] << ", expected "
        << wanted[i];
}

// A few roundings of float64, float32's own, none of integers.
inline double usual_tolerance(Dtype dtype) {
  return !is_inexact(dtype) ? 0 : real_dtype(dtype) == float64 ? 1e-11 : 1e-5;
}
// The dtypes may differ. Without a tolerance it is that of the wanted dtype.
inline void expect_close(const Array& got, const Array& wanted, double tolerance = -1,
                         const std::string& what = "", Scale scale = Scale::element) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  if (tolerance < 0) tolerance = usual_tolerance(wanted.dtype());
  expect_close_numbers(to_vector<Number>(got), to_vector<Number>(wanted), tolerance, what, scale);
}
inline void expect_close(const Array& got, const Array& wanted, const std::string& what,
                         double tolerance = -1) {
  expect_close(got, wanted, tolerance, what);
}
inline void expect_close(const std::vector<Array>& got, const std::vector<Array>& wanted, double tolerance,
                         const std::string& what = "", Scale scale = Scale::element) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], wanted[i], tolerance, what + " [" + std::to_string(i) + "]", scale);
}

inline void expect_equal(const Array& got, const Array& wanted, const std::string& what,
                         double tolerance = 0) {
  expect_close(got, wanted, tolerance, what);
}
// Against values in row-major order.
inline void expect_close(const Array& got, const std::vector<double>& wanted, double tolerance,
                         const std::string& what = "") {
  expect_close_numbers(to_vector<Number>(got), {wanted.begin(), wanted.end()}, tolerance, what);
}
// The dtypes must be equal, too.
inline void expect_alike(const Array& got, const Array& wanted, double tolerance = 1e-12,
                         const std::string& what = "") {
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  expect_close(got, wanted, tolerance, what);
}

// Integers and bools exactly; float64 to a few roundings, float32 to its own.
inline void expect_same(const Array& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  const bool is_exact = !is_inexact(wanted.dtype());
  expect_close(got, wanted, is_exact ? 0 : real_dtype(wanted.dtype()) == float64 ? 1e-13 : 1e-5, what);
}

}  // namespace tessera::test
