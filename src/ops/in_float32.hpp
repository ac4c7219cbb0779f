// Functions made of several ops compute in float32 from end to end where an operand is bfloat16 or float16,
// and round once: a mean is a sum and a division, and squares of float16 overflow at 256.
#pragma once
#include <tessera/ops.hpp>

namespace tessera {

// f(x as float32), as x's dtype.
template <class F> Array in_float32(const Array& x, F&& f) {
  return astype(f(astype(x, float32)), x.dtype());
}

}  // namespace tessera
