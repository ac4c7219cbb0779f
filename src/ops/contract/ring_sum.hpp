// A product whose contracted dim is split, and whose result each rank keeps a block of. Instead of making the
// whole sum's term and scattering it, the terms of one block travel along a ring and grow, each rank adding
// its own as its product accumulates:
//
//   3 ranks   turn 0       turn 1       turn 2
//   rank 0    block 2  ->  block 1  ->  block 0      what rank r works on goes to rank r + 1;
//   rank 1    block 0  ->  block 2  ->  block 1      in the last turn everybody has its own
//   rank 2    block 1  ->  block 0  ->  block 2
#pragma once
#include "ops/contract/dot_general.hpp"
#include "program/pieces.hpp"

namespace tessera {

struct RingSumPlan {
  DotDims dims;
  MeshAxes axes;                           // along which the terms are added up
  int dim_a = -1, dim_b = -1, dim_c = -1;  // the dim whose blocks are kept
  std::int64_t pieces = 1;                 // of a block, which travel one after the other
  double flops = 0;                        // of one rank
  template <class V> void fields(V&& visit) const {
    visit("axes", axes);
    visit("dim", dim_c);
    visit("pieces", pieces);
  }
};

// The answer where `args.kept` is asked for. Pure. The talk that it names is ring_sum_op.
Pieces plan_ring_sum(const PieceArgs&);
extern const OpDef ring_sum_op;

}  // namespace tessera
