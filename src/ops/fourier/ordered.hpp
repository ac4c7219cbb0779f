// Fourier transforms of a ReproducibleScope: one dim after the other, each line complete on one rank.
#pragma once
#include "graph/op.hpp"
#include "ops/fourier/fft_op.hpp"

namespace tessera {

// The transform that the params describe. x has the dtype that record_fft asks for.
Array ordered_fft(const Array& x, const FftParams&);

}  // namespace tessera
