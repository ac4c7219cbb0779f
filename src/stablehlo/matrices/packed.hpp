// LAPACK's packed QR, of which JAX takes q (orgqr) and the upper triangle: both are tessera's own QR's, so a
// split matrix is not gathered, and the packed form is never made.
#pragma once
#include <optional>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// Notes that `packed` with `taus` stands for the packed QR of x.
void note_packed(Evaluator&, const Array& packed, const Array& taus, const Array& x);
// Notes that a leading part of a packed form, or one with more columns, stands for it still.
void keep_packed(OpCall&, const Array& result);
// q of that many columns, if the arrays stand for a packed QR that has it.
std::optional<Array> q_of_packed(Evaluator&, const Array& packed, const Array& taus, std::int64_t columns);
// select(below the diagonal, 0, packed): r.
std::optional<Array> upper_of_packed(const OpCall&);

}  // namespace tessera::stablehlo
