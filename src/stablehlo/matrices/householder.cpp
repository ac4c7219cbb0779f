// Householder reflections one after the other, for programs that want a factorization in LAPACK's packed form
// itself. What JAX makes of that form at once (q, and r as the upper triangle) is tessera's own QR instead:
// packed.cpp.
#include <tessera/control.hpp>
#include <tessera/ops.hpp>

#include "stablehlo/matrices/matrices.hpp"
#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "types/extents.hpp"

namespace tessera::stablehlo {
namespace {

Array line(std::int64_t n, bool is_column) {
  const Array numbers = arange(n, int32);
  return is_column ? reshape(numbers, Shape{n, 1}) : numbers;
}

// Column i of the last dim, (..., m, 1).
Array column_of(const Array& a, const Array& i) { return expand_dims(take(a, i, a.ndim() - 1), -1); }

// LAPACK's larfg: (I - tau v v^H) turns the column below a row into beta at that row.
struct Reflection {
  Array v, beta, tau;  // (..., m, 1), (..., 1, 1), (..., 1, 1)
};

Reflection reflection_of(const Array& column, const Array& row) {
  const Array rows = line(column.shape()[static_cast<std::size_t>(column.ndim()) - 2], true);
  const Array zero = number_like(0, column), one = number_like(1, column);
  const std::vector<int> dims{column.ndim() - 2};
  const Array below = where(greater(rows, row), column, zero);
  const Array alpha = sum(where(equal(rows, row), column, zero), dims, true);
  const Array rest = sum(square(abs(below)), dims, true);
  const Array norm = sqrt(add(square(abs(alpha)), rest));
  const Array is_done = equal(rest, number_like(0, rest)) & equal(imag(alpha), number_like(0, rest));
  const Array size = where(is_done, real(alpha),
                           where(greater_equal(real(alpha), number_like(0, rest)), negative(norm), norm));
  const Array beta = astype(size, column.dtype());
  const Array safe = where(equal(beta, zero), one, beta);
  const Array tau = where(is_done, zero, divide(subtract(beta, alpha), safe));
  const Array scale = where(is_done, one, subtract(alpha, beta));
  const Array v = where(equal(rows, row), one, where(is_done, zero, divide(below, scale)));
  return {v, beta, tau};
}

// Column i with beta at the row and v below it.
Array with_column(const Array& a, const Reflection& r, const Array& i, const Array& row) {
  const auto m = a.shape()[static_cast<std::size_t>(a.ndim()) - 2], n = a.shape().back();
  const Array rows = line(m, true), columns = line(n, false);
  const Array made = where(equal(rows, row), r.beta, where(greater(rows, row), r.v, a));
  return where(equal(columns, i), made, a);
}

Array with_tau(const Array& taus, const Reflection& r, const Array& i) {
  return where(equal(line(taus.shape().back(), false), i), squeeze(r.tau, {-1}), taus);
}

Array no_taus(const Array& a, std::int64_t k) {
  return zeros(join(without_last(a.shape(), 2), {k}), a.dtype());
}

Array conj_of(const Array& x) { return is_complex(x.dtype()) ? conj(x) : x; }

template <class Body> Arrays repeated(std::int64_t steps, Arrays init, Body body) {
  return fori_loop(
      0, static_cast<int>(steps), [&](const Array& i, const Arrays& values) { return body(i, values); },
      std::move(init));
}

}  // namespace

Packed householder_qr(const Array& a) {
  const auto m = a.shape()[static_cast<std::size_t>(a.ndim()) - 2], n = a.shape().back(), k = std::min(m, n);
  const auto results = repeated(k, {a, no_taus(a, k)}, [&](const Array& i, const Arrays& values) {
    const Array& x = values[0];
    const Reflection r = reflection_of(column_of(x, i), i);
    const Array later = subtract(x, multiply(multiply(conj_of(r.tau), r.v), matmul(adjoint(r.v), x)));
    const Array turned = where(greater(line(n, false), i), later, x);
    return Arrays{with_column(turned, r, i, i), with_tau(values[1], r, i)};
  });
  return {results[0], results[1]};
}

Packed householder_hessenberg(const Array& a) {
  const auto n = a.shape().back();
  if (n < 2) return {a, no_taus(a, 0)};
  const auto results = repeated(n - 1, {a, no_taus(a, n - 1)}, [&](const Array& i, const Arrays& values) {
    const Array& x = values[0];
    const Array row = add(i, full({}, 1));
    const Array rows = line(n, true), columns = line(n, false);
    const Reflection r = reflection_of(column_of(x, i), row);
    // Reflections that are packed below the diagonal are no part of the matrix.
    Array seen = where(greater(rows, row) & less_equal(columns, i), number_like(0, x), x);
    seen = subtract(seen, multiply(multiply(r.tau, matmul(seen, r.v)), adjoint(r.v)));
    seen = subtract(seen, multiply(multiply(conj_of(r.tau), r.v), matmul(adjoint(r.v), seen)));
    return Arrays{with_column(where(greater(columns, i), seen, x), r, i, row), with_tau(values[1], r, i)};
  });
  return {results[0], results[1]};
}

// From the last reflection to the first: v is what stands below the diagonal of a column, after a one.
Array product_of_reflections(const Array& packed, const Array& taus, int columns) {
  const auto m = packed.shape()[static_cast<std::size_t>(packed.ndim()) - 2], k = taus.shape().back();
  Array q = broadcast_to(eye(m, packed.dtype()), join(without_last(packed.shape(), 1), {m}));
  if (k > 0)
    q = repeated(k, {q}, [&](const Array& step, const Arrays& values) {
      const Array i = subtract(full({}, static_cast<std::int32_t>(k - 1)), step);
      const Array rows = line(m, true), column = column_of(packed, i);
      const Array v =
          where(equal(rows, i), number_like(1, packed), where(less(rows, i), number_like(0, packed), column));
      const Array tau = expand_dims(expand_dims(take(taus, i, taus.ndim() - 1), -1), -1);
      return Arrays{subtract(values[0], multiply(multiply(tau, v), matmul(adjoint(v), values[0])))};
    })[0];
  return part_along(q, q.ndim() - 1, 0, columns);
}

}  // namespace tessera::stablehlo
