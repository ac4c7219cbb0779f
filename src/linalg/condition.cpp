// An estimate of the condition number from an existing factorization.
#include <algorithm>
#include <limits>

#include "linalg/operands.hpp"
#include "ops/elementwise/internal.hpp"
#include "types/extents.hpp"

namespace tessera::linalg {
namespace {

// The 1-norm of each matrix: the largest column sum.
Array one_norm(const Array& x) { return sum(abs(x), -2); }

// x / |x|, and 1 for 0.
Array directions(const Array& x) {
  const Array is_zero = x == 0;
  return where(is_zero, ones_like(x), x / astype(where(is_zero, ones_like(abs(x)), abs(x)), x.dtype()));
}

// B = U^-1 L^-1, which is a^-1 with its columns permuted, so it has the same 1-norm.
struct Inverse {
  const Array& lu;
  std::source_location where;
  Array times(const Array& x) const {
    const Array y = factor::triangular_solve(lu, x, {.lower = true, .unit_diagonal = true});
    return factor::triangular_solve(lu, y, {});
  }
  Array adjoint_times(const Array& x) const {
    const bool conjugate = is_complex(lu.dtype());
    const Array y = factor::triangular_solve(lu, x, {.transpose = true, .conjugate = conjugate});
    return factor::triangular_solve(
        lu, y, {.lower = true, .transpose = true, .conjugate = conjugate, .unit_diagonal = true});
  }
};

// Higham's form of Hager's method (ACM TOMS 14, 1988; LAPACK's xLACN2): |B|_1 is the largest |B e_j|_1, and
// the gradient of |B x|_1 at x gives the j to try next. The start is the mean of all columns; the last
// vector, of growing terms with alternating signs, catches matrices on which the gradient fails. Every norm
// found is a lower bound, so extra rounds do no harm: their number is fixed, and no value is read.
Array norm_of_inverse(const Inverse& inverse) {
  const Array& lu = inverse.lu;
  const std::int64_t n = rows_of(lu);
  const Dtype real = real_dtype(lu.dtype());
  const Array i = arange(static_cast<int>(n)),
              growth = 1.0 + astype(i, real) / static_cast<double>(std::max<std::int64_t>(n - 1, 1));
  const Array alternating = where(i % 2 == 0, growth, -growth),
              mean = full_like(growth, 1.0 / static_cast<double>(n));
  const auto in_batch = [&](const Array& columns) {
    return broadcast_to(astype(columns, lu.dtype()),
                        join(without_last(lu.shape(), 1), {columns.shape().back()}));
  };
  const Array start = inverse.times(in_batch(stack({mean, alternating}, -1)));
  const Array norms = one_norm(start);
  Array estimate = maximum(norms(ellipsis, 0), norms(ellipsis, 1) * (2.0 / (3.0 * static_cast<double>(n))));
  Array product = start(ellipsis, slice(0, 1));
  constexpr int rounds = 3;  // two nearly always suffice
  for (int round = 0; round < rounds; ++round) {
    const Array steepest = argmax(abs(inverse.adjoint_times(directions(product))), -2);  // (..., 1)
    product = inverse.times(astype(equal(expand_dims(i, -1), expand_dims(steepest, -2)), lu.dtype()));
    estimate = maximum(estimate, one_norm(product)(ellipsis, 0));
  }
  return estimate;
}

}  // namespace

Array rcond(const LuFactor& factored, const Operand& norm1) {
  const Call call("rcond", norm1.where);
  const Array lu = matrices(factored.lu, true);
  check_usable(norm1.array);
  const Dtype real = real_dtype(lu.dtype());
  const Array norm = cast_to(norm1.array, real);
  if (const Shape expected = without_last(lu.shape(), 2); !(norm.shape() == expected))
    throw ShapeError(call_text() + ": the norms have the shape " + to_string(norm.shape()) +
                     "; of a factor of shape " + to_string(lu.shape()) + " they must have the shape " +
                     to_string(expected) +
                     ", one for each matrix: norm(a, 1, {-2, -1}) of the matrix that was factored");
  if (rows_of(lu) == 0) return condition_estimate(ones_like(norm));
  const Array of_inverse = norm_of_inverse({lu, norm1.where});
  // A pivot that is zero, or so small that the factor or the solves overflow, means an infinite condition
  // number. NaN in the matrix, visible in its norm, stays NaN.
  const Array unknown = !isfinite(norm);
  const Array is_bounded = isfinite(of_inverse) & (of_inverse > 0) & (norm > 0);
  const Array result = where(
      is_bounded, reciprocal(norm) / where(is_bounded, of_inverse, ones_like(of_inverse)), zeros_like(norm));
  return condition_estimate(
      where(unknown, full_like(result, std::numeric_limits<double>::quiet_NaN()), result));
}

Array rcond(const Operand& operand) {
  const Call call("rcond", operand.where);
  const Array a = matrices(operand, true);
  const auto [lu, pivots] = factor::lu_factor(a, {});
  if (rows_of(a) == 0) return rcond({lu, pivots}, real(sum(a, Axes{-2, -1})));
  return rcond({lu, pivots}, max(one_norm(a), -1));
}

}  // namespace tessera::linalg
