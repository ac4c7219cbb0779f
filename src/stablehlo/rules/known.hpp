// Functions and loops of JAX that are an op of tessera's: threefry's bits, and pivots as a permutation. They
// are recognised by their whole text; any other text is evaluated as it stands.
#pragma once
#include <optional>

#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

// The results of a call of JAX's threefry2x32(key, key, counters, counters).
std::optional<Arrays> known_call(OpCall&, const Function&);
// The bits of a draw, if the operands are both results of threefry for row-major counters.
std::optional<Array> known_xor(const OpCall&);
// JAX's loop over the exchanges of an LU factorization.
std::optional<Arrays> known_loop(const OpCall&);

}  // namespace tessera::stablehlo
