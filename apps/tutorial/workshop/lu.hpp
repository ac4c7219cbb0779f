// LU with partial pivoting, written with public ops: P A = L U.
#pragma once
#include "tutorial/support.hpp"

namespace workshop {

using namespace tutorial;

struct Factors {
  Array p, l, u;
};

/// Row by row, as on one device. Works both eagerly and under jit.
Factors lu_decomposition(const Array& a);

/// The y of l y = b.
Array forward_substitution(const Array& l, const Array& b);
/// The x of u x = y.
Array backward_substitution(const Array& u, const Array& y);
/// The x of a x = b by the three functions above.
Array solve_by_hand(const Array& a, const Array& b);

/// The body of a shard_map over axis "x": a and b are this device's rows, the result is replicated.
Array solve_rows(const Array& a, const Array& b);

}  // namespace workshop
