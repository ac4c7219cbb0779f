// Fourier transforms of a ReproducibleScope: one dim after the other, each line whole on a rank.
#pragma once
#include "graph/op.hpp"
#include "ops/fourier/fft_op.hpp"

namespace tessera {

// The transform that the params describe, of types that its op has inferred.
Array ordered_fft(const Array& x, const FftParams&);

}  // namespace tessera
