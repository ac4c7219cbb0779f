#include "lu.hpp"

namespace workshop {

namespace {

// Exchanges rows i and pivot of x, in the columns before `columns`.
Array swap_rows(const Array& x, std::int64_t i, const Array& pivot, std::int64_t columns) {
  const Array here = stack({astype(Array(i), int32), pivot}), there = stack({pivot, astype(Array(i), int32)});
  return x.at(here, slice(0, columns)).set(x(there, slice(0, columns)));
}

Array swap_where_needed(const Array& x, std::int64_t i, const Array& pivot, std::int64_t columns) {
  return cond(
      pivot != i, [=](const Array& v, const Array& row) { return swap_rows(v, i, row, columns); },
      [](const Array& v, const Array&) { return v; }, x, pivot);
}

}  // namespace

Factors lu_decomposition(const Array& a) {
  const std::int64_t n = a.shape()[0];
  Factors f{eye(n), eye(n), a};
  for (std::int64_t i = 0; i < n; ++i) {
    const Array pivot = astype(argmax(abs(f.u(slice(i, n), i)), 0) + i, int32);
    f.u = swap_where_needed(f.u, i, pivot, n);
    f.p = swap_where_needed(f.p, i, pivot, n);
    if (i > 0) f.l = swap_where_needed(f.l, i, pivot, i);
    for (std::int64_t j = i + 1; j < n; ++j) {
      const Array factor = f.u(j, i) / f.u(i, i);
      f.l = f.l.at(j, i).set(factor);
      f.u = f.u.at(j).set(f.u(j) - factor * f.u(i));
    }
  }
  return f;
}

Array forward_substitution(const Array& l, const Array& b) {
  Array y = zeros_like(b);
  for (std::int64_t i = 0; i < b.shape()[0]; ++i)
    y = y.at(i).set((b(i) - dot(l(i, slice(0, i)), y(slice(0, i)))) / l(i, i));
  return y;
}

Array backward_substitution(const Array& u, const Array& y) {
  Array x = zeros_like(y);
  const std::int64_t n = y.shape()[0];
  for (std::int64_t i = n - 1; i >= 0; --i)
    x = x.at(i).set((y(i) - dot(u(i, slice(i + 1, n)), x(slice(i + 1, n)))) / u(i, i));
  return x;
}

Array solve_by_hand(const Array& a, const Array& b) {
  const Factors f = lu_decomposition(a);
  return backward_substitution(f.u, forward_substitution(f.l, dot(f.p, b)));
}

namespace {

// The rows of a matrix that is split over axis "x", with the right-hand side as last column.
struct Rows {
  Array block, number;  // this device's rows, and their row numbers

  // Row i on every device: its device contributes the row, the others zeros.
  Array row(const Array& i) const { return psum(sum(where(expand_dims(number == i, 1), block, 0), 0), "x"); }

  // The first row at or below i whose element in column i is largest.
  Array pivot(std::int64_t i) const {
    const Array size = where(number >= i, abs(block(slice(), i)), -1.0f);
    const Array largest = pmax(max(size), "x");
    const std::int64_t none = 1 << 30;
    return pmin(min(where(size == largest, number, astype(Array(none), int32))), "x");
  }

  // Eliminates column i from the rows below i.
  Rows eliminate(std::int64_t i) const {
    const Array p = pivot(i), here = row(astype(Array(i), int32)), there = row(p);
    const Array swapped = where(expand_dims(number == p, 1), expand_dims(here, 0), block);
    const Array rows = where(expand_dims(number == i, 1), expand_dims(there, 0), swapped);
    const Array factor = where(number > i, rows(slice(), i) / there(i), 0.0f);
    return {rows - expand_dims(factor, 1) * expand_dims(there, 0), number};
  }
};

}  // namespace

// Gaussian elimination of (a | b): every step sends two rows and two numbers to all devices, never a block.
Array solve_rows(const Array& a, const Array& b) {
  const std::int64_t n = a.shape()[1], mine = a.shape()[0];
  Rows rows{concatenate({a, expand_dims(b, 1)}, 1),
            arange(static_cast<int>(mine)) + axis_index("x") * static_cast<int>(mine)};
  for (std::int64_t i = 0; i < n; ++i) rows = rows.eliminate(i);
  Array x = zeros({n});
  for (std::int64_t i = n - 1; i >= 0; --i) {
    const Array u = rows.row(astype(Array(i), int32));
    x = x.at(i).set((u(n) - dot(u(slice(i + 1, n)), x(slice(i + 1, n)))) / u(i));
  }
  return x;
}

}  // namespace workshop
