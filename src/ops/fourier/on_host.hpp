// All stages of a transform by ranks of one host, in memory that all of them can access (comm/host_memory).
//
//   P('x', None, None), 2 ranks, result split likewise:   rank 0 holds planes 0 1   rank 1 planes 2 3
//
//     stage 1   each rank transforms its planes into its part of the result             dims 1 and 2
//     stage 2   rank 0 takes columns of the left half out of all four planes, rank 1    dim 0
//               of the right half, a few at a time: read, transformed in cache, and written back in place
//
// Nothing is packed, sent or unpacked. A transposed result needs no third array either: stage 1 writes into
// it, stage 2 works in place. Longer chains write directly in the layout of the stage after the next:
//
//   stage      1        2             3                 S
//   reads      operand  V1 of others  its own V2        its own V(S-1)
//   writes     own V1   V2 of others  V3 of others ...  the result of others
#pragma once
#include <utility>
#include <vector>

#include "graph/op.hpp"
#include "ops/fourier/stages.hpp"

namespace tessera {

struct OnHostParams {
  kernels::FftKind kind = kernels::FftKind::c2c;
  kernels::FftSign sign = kernels::FftSign::forward;
  int halved = -1;  // dim of r2c and c2r
  double scale = 1;
  std::vector<std::pair<Sharding, std::vector<int>>> stages;  // layout, dims that are unsplit there
  double flops = 0;  // flops of one rank; derived from the other members
  template <class V> void fields(V&& visit) const {
    visit("kind", kind), visit("sign", sign), visit("halved", halved), visit("scale", scale),
        visit("stages", stages);
  }
};
extern const OpDef fft_on_host_op;

// Whether these stages can run on one host, from the first one's layout to `to`: equal on every rank.
bool runs_on_host(const FftStages&, const Sharding& to, const Type& in);

}  // namespace tessera
