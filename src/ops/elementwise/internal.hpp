// Elementwise ops that other rooms need and users do not.
#pragma once
#include <tessera/ops.hpp>

namespace tessera {

// x * y + z, rounded once.
Array multiply_add(const Operand& x, const Operand& y, const Operand& z);
// x, as a result that has no derivative: a condition estimate.
Array condition_estimate(const Operand& x);

}  // namespace tessera
