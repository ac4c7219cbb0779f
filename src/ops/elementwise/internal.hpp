// Elementwise ops for other folders, not for users.
#pragma once
#include <tessera/ops.hpp>

namespace tessera {

// x * y + z, rounded once.
Array multiply_add(const Operand& x, const Operand& y, const Operand& z);
// The identity, as a result without a derivative: for a condition estimate.
Array condition_estimate(const Operand& x);

}  // namespace tessera
