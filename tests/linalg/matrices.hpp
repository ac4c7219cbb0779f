// Host matrices for the tests of linalg: independent arithmetic in plain loops, and the layouts to test on
// the available ranks.
#pragma once
#include <gtest/gtest.h>

#include <tessera/linalg.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/traffic.hpp"

namespace tessera::test {

template <class T> inline constexpr bool is_complex_value = false;
template <class R> inline constexpr bool is_complex_value<std::complex<R>> = true;
template <class T> struct RealPart { using type = T; };
template <class R> struct RealPart<std::complex<R>> { using type = R; };
template <class T> using real_part = typename RealPart<T>::type;

template <class T> double eps() { return static_cast<double>(std::numeric_limits<real_part<T>>::epsilon()); }
template <class T> T conjugate(T x) {
  if constexpr (is_complex_value<T>)
    return std::conj(x);
  else
    return x;
}

// Row-major.
template <class T> struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<T> values;
  Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(r * c, T(0)) {}
  T& operator()(std::int64_t i, std::int64_t j) { return values[i * columns + j]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return values[i * columns + j]; }
  Array array() const { return tessera::array(values, Shape{rows, columns}); }
};
template <class T> Matrix<T> matrix_of(const Array& a) {
  Matrix<T> m(a.shape()[0], a.ndim() > 1 ? a.shape()[1] : 1);
  m.values = to_vector<T>(a);
  return m;
}
template <class T> Matrix<T> identity(std::int64_t n, std::int64_t m = -1) {
  Matrix<T> result(n, m < 0 ? n : m);
  for (std::int64_t i = 0; i < std::min(result.rows, result.columns); ++i) result(i, i) = T(1);
  return result;
}
template <class T> Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<T> c(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}
template <class T> Matrix<T> adjoint(const Matrix<T>& a) {
  Matrix<T> t(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) t(j, i) = conjugate(a(i, j));
  return t;
}
template <class T> double one_norm(const Matrix<T>& a) {
  double most = 0;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
    most = std::max(most, sum);
  }
  return most;
}
template <class T> double difference(const Matrix<T>& a, const Matrix<T>& b) {
  if (a.values.size() != b.values.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double d = std::abs(a.values[i] - b.values[i]);
    most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
  }
  return most;
}

template <class T> std::vector<T> random_values(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) {
    const double re = uniform(bits);
    if constexpr (is_complex_value<T>)
      value = T(static_cast<real_part<T>>(re), static_cast<real_part<T>>(uniform(bits)));
    else
      value = static_cast<T>(re);
  }
  return values;
}
template <class T> Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed = 1) {
  Matrix<T> m(rows, columns);
  m.values = random_values<T>(m.values.size(), seed);
  return m;
}
template <class T> Matrix<T> positive_definite(std::int64_t n, unsigned seed = 1) {
  const auto m = random_matrix<T>(n, n, seed);
  auto a = product(m, adjoint(m));
  for (std::int64_t i = 0; i < n; ++i) a(i, i) += T(1);
  return a;
}
template <class T> Matrix<T> hermitian(std::int64_t n, unsigned seed = 1) {
  auto m = random_matrix<T>(n, n, seed);
  const auto h = adjoint(m);
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = (m.values[i] + h.values[i]) * T(0.5);
  return m;
}

// Whether this rank takes part in an evaluation with this layout. The others skip it, and get an error at the
// next call of all ranks.
inline bool takes_part(const Sharding& layout) {
  return layout.device_set().count(devices()[process_index()]) > 0;
}
// Matrices split by rows, by columns, both, over all ranks and over a sub-mesh.
inline std::vector<Sharding> layouts_of_matrices() {
  const int ranks = device_count();
  const Mesh row = make_mesh({ranks}, {"x"});
  std::vector<Sharding> layouts{NamedSharding(row, P("x", None)), NamedSharding(row, P(None, "x"))};
  for (int r = 2; r < ranks; ++r)
    if (ranks % r == 0) {
      const Mesh grid = make_mesh({r, ranks / r}, {"x", "y"});
      layouts.push_back(NamedSharding(grid, P("x", "y")));
      layouts.push_back(NamedSharding(grid, P("y", "x")));
      layouts.push_back(NamedSharding(grid, P("x", None)));
      layouts.push_back(NamedSharding(grid, P(None, axes("y", "x"))));
    }
  if (ranks > 2) layouts.push_back(NamedSharding(make_mesh({ranks - 1}, {"x"}), P("x", None)));
  return layouts;
}
inline std::string text_of(const Sharding& layout) {
  std::string text;
  for (const auto& [name, size] : layout.mesh().shape()) text += name + "=" + std::to_string(size) + " ";
  const PartitionSpec spec = layout.spec();
  for (const auto& dim : spec.dims()) {
    text += "[";
    for (const auto& name : dim.names()) text += name;
    text += "]";
  }
  return text;
}

template <class... T> struct Types {};
template <class F, class... T> void for_types(Types<T...>, F&& f) { (f(T{}), ...); }
using AllTypes = Types<float, double, std::complex<float>, std::complex<double>>;

}  // namespace tessera::test
