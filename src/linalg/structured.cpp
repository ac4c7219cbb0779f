// Matrices built from vectors and blocks, and systems of tensors.
#include <algorithm>

#include "linalg/operands.hpp"
#include "ops/functions.hpp"

namespace tessera::linalg {

Array tensorsolve(const Operand& a, const Operand& b) {
  const Call call("tensorsolve", a.where);
  check_usable(a.array);
  check_usable(b.array);
  const auto &given = a.array.shape().vector(), &right = b.array.shape().vector();
  const bool begins = given.size() >= right.size() && std::equal(right.begin(), right.end(), given.begin());
  std::vector<std::int64_t> rest(
      given.begin() + static_cast<std::ptrdiff_t>(std::min(right.size(), given.size())), given.end());
  const auto n = b.array.size();
  if (!begins || Shape(rest).elements() != n)
    throw ShapeError(call_text() + ": a has the shape " + to_string(a.array.shape()) + ", b " +
                     to_string(b.array.shape()) + "; a must have b's dims in front, and dims of " +
                     std::to_string(n) + " elements behind them");
  return reshape(solve(reshape(a.array, {n, n}), reshape(b.array, {n})), Shape(rest));
}

namespace {

void check_vector(const Array& x) {
  check_usable(x);
  if (x.ndim() != 1)
    throw ShapeError(call_text() + ": an operand has the shape " + to_string(x.shape()) +
                     "; it must be a vector");
}

// Element (i, j) has index n - 1 + i - j in  row[n - 1] ... row[1] column[0] column[1] ...
Array by_diagonals(const Array& column, const Array& row) {
  const auto m = column.shape()[0], n = row.shape()[0];
  if (m == 0 || n == 0) return zeros({m, n}, column.dtype());
  const Array all = concatenate({flip(row(slice(1, n)), 0), column}, 0);
  const Array places = expand_dims(arange(m), 1) - expand_dims(arange(n), 0) + (n - 1);
  return take(all, places, 0);
}

}  // namespace

Array toeplitz(const Operand& column) {
  const Call call("toeplitz", column.where);
  check_vector(column.array);
  return by_diagonals(column.array, is_complex(column.array.dtype()) ? conj(column.array) : column.array);
}
Array toeplitz(const Operand& column, const Operand& row) {
  const Call call("toeplitz", column.where);
  check_vector(column.array);
  check_vector(row.array);
  const auto both = promote(WeakDtype{column.array.dtype(), column.array.is_weakly_typed()},
                            WeakDtype{row.array.dtype(), row.array.is_weakly_typed()})
                        .dtype;
  return by_diagonals(cast_to(column.array, both), cast_to(row.array, both));
}

Array block_diag(std::vector<Array> matrices, std::source_location where) {
  const Call call("block_diag", where);
  if (matrices.empty()) throw ArgumentError(call_text() + ": there are no matrices");
  std::int64_t columns = 0;
  for (const auto& x : matrices) {
    check_usable(x);
    if (x.ndim() != 2)
      throw ShapeError(call_text() + ": an operand has the shape " + to_string(x.shape()) +
                       "; all must be matrices");
    columns += x.shape()[1];
  }
  std::vector<Array> bands;
  std::int64_t before = 0;
  for (const auto& x : matrices) {
    const auto n = x.shape()[1];
    bands.push_back(concatenate(
        {zeros({x.shape()[0], before}, x.dtype()), x, zeros({x.shape()[0], columns - before - n}, x.dtype())},
        1));
    before += n;
  }
  return concatenate(std::move(bands), 0);
}

}  // namespace tessera::linalg
