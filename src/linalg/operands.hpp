// Preparation of the operands of linalg's functions.
#pragma once
#include <tessera/linalg.hpp>

#include "ops/build.hpp"
#include "ops/factor/factor_op.hpp"
#include "ops/factor/functions.hpp"

namespace tessera::linalg {

// The operand as a batch of matrices of an inexact dtype.
Array matrices(const Operand& a, bool square);
// Both with the promoted dtype and the same batch dims; b as matrices. `vectors`: b was given as vectors, and
// the result must be too.
struct System {
  Array a, b;
  bool vectors;
};
System system_of(const Operand& a, const Operand& b, bool square);
inline Array as_given(const System& system, const Array& x) { return system.vectors ? squeeze(x, -1) : x; }

// x moved to the layout of `like`, if that is committed.
Array placed_as(const Array& x, const Array& like);

inline std::int64_t rows_of(const Array& a) { return a.shape()[a.shape().size() - 2]; }
inline std::int64_t columns_of(const Array& a) { return a.shape().back(); }
using factor::epsilon;

}  // namespace tessera::linalg
