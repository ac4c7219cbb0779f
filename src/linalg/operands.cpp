#include "linalg/operands.hpp"
#include "types/extents.hpp"

namespace tessera::linalg {

Array matrices(const Operand& a, bool square) {
  factor::check_matrices(a.array, square);
  return cast_to(a.array, to_inexact(a.array.dtype()));
}

// A stack of vectors is distinguished from matrices by its dims: one fewer than a's, and equal to a's leading
// ones.
System system_of(const Operand& a, const Operand& b, bool square) {
  factor::check_matrices(a.array, square);
  check_usable(b.array);
  const auto dtype = to_inexact(promote(WeakDtype{a.array.dtype(), a.array.is_weakly_typed()},
                                        WeakDtype{b.array.dtype(), b.array.is_weakly_typed()})
                                    .dtype);
  Array left = cast_to(a.array, dtype), right = cast_to(b.array, dtype);
  const Shape &sa = left.shape(), sb = right.shape();
  const bool stack = sb.ndim() == sa.ndim() - 1 && sb == without_last(sa, 1);
  const bool vectors = sb.ndim() == 1 || stack;
  if (vectors) right = expand_dims(right, -1);
  if (right.ndim() < 2 || rows_of(right) != rows_of(left))
    throw ShapeError(call_text() + ": the matrix has " + std::to_string(rows_of(left)) +
                     " rows, but the right-hand side of shape " + to_string(sb) + " has " +
                     (sb.ndim() == 0 ? "none" : std::to_string(vectors ? sb.back() : sb[sb.size() - 2])) +
                     ". a is " + to_string(sa) +
                     "; b must be (n), (..., n, k), or a's shape without its last dimension");
  const auto lead = [](const Array& x) { return without_last(x.shape(), 2); };
  const Shape batch = broadcast_shapes(lead(left), lead(right));
  const auto spread = [&](const Array& x) {
    if (lead(x) == batch) return x;
    return broadcast_to(x, join(batch, {rows_of(x), columns_of(x)}));
  };
  return {spread(left), spread(right), vectors};
}

Array placed_as(const Array& x, const Array& like) {
  const auto& sharding = output_of(like).sharding;
  if (!sharding || like.node()->region || (output_of(x).sharding && *output_of(x).sharding == *sharding))
    return x;
  return with_sharding_constraint(x, *sharding);
}

}  // namespace tessera::linalg
