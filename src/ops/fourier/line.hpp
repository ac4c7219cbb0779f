// A transform along one split dim, by the ranks that split it together.
//
// The six steps: N = r * m points as a matrix of r rows. x[j1 * m + j2] becomes X[k1 + r * k2].
//
//   blocks of x --exchange--> columns j2 of mine --FFT over j1, times exp(-2 pi i j2 k1 / N)--> exchange -->
//     rows k1 of mine
//     --FFT over j2--> exchange --> blocks of X
//
// r is the divisor of N nearest its square root. If the divisors of N would leave most ranks idle (a large
// prime), the transform becomes a convolution of M >= 2 N - 1 points, M a product of small primes (Bluestein
// 1970): five exchanges, at most 2 to 4 blocks on a rank. A line of a few KiB is transformed on the first
// rank.
#pragma once
#include <vector>

#include "graph/op.hpp"
#include "ops/fourier/fft_op.hpp"

namespace tessera {

struct LineParams {
  kernels::FftKind kind = kernels::FftKind::c2c;
  kernels::FftSign sign = kernels::FftSign::forward;
  int dim = 0;
  std::int64_t length = 0;  // c2r: points of the result
  double scale = 1;
  double flops = 0;  // flops of one rank; derived from the other members and the operand
  kernels::FftPlanning planning = kernels::FftPlanning::measured;
  template <class V> void fields(V&& visit) const {
    visit("kind", kind), visit("sign", sign), visit("dim", dim), visit("length", length),
        visit("scale", scale), visit("planning", planning);
  }
};
LineParams line_params(const FftParams&, int dim);

struct LineCost {
  double seconds = 0;
  std::vector<CommunicationCost> communication;
};
LineCost line_cost(const LineParams&, const Type& in, const Sharding& layout,
                   const std::vector<int>& fixed_axes);

extern const OpDef fft_line_op;

}  // namespace tessera
