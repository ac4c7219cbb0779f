// Functions composed of several ops compute entirely in float32 for bfloat16 and float16 operands and round
// once: a mean is a sum and a division, and squares of float16 overflow at 256.
#pragma once
#include <tessera/ops.hpp>

namespace tessera {

// f(x as float32), cast to x's dtype.
template <class F> Array in_float32(const Array& x, F&& f) {
  return astype(f(astype(x, float32)), x.dtype());
}

}  // namespace tessera
