// A product with a split contracted dim, of whose result each rank keeps one block. Instead of computing a
// term of the whole result and reduce-scattering it, the terms of one block travel along a ring, and each
// rank adds its own as its product accumulates:
//
//   3 ranks   turn 0       turn 1       turn 2
//   rank 0    block 2  ->  block 1  ->  block 0      rank r sends its block to rank r + 1;
//   rank 1    block 0  ->  block 2  ->  block 1      in the last turn every rank has its own
//   rank 2    block 1  ->  block 0  ->  block 2
#pragma once
#include "ops/contract/dot_general.hpp"
#include "program/algorithms.hpp"

namespace tessera {

struct RingSumPlan {
  DotDims dims;
  MeshAxes axes;                           // along which the terms are summed
  int dim_a = -1, dim_b = -1, dim_c = -1;  // the dim whose blocks are kept
  std::int64_t pieces = 1;                 // pieces of a block, sent one after the other
  double flops = 0;                        // flops of one rank
  template <class V> void fields(V&& visit) const {
    visit("axes", axes);
    visit("dim", dim_c);
    visit("pieces", pieces);
  }
};

// The plan for `args.kept`. Pure. Its communicating kernel is ring_sum_op.
ChosenAlgorithm plan_ring_sum(const AlgorithmArgs&);
extern const OpDef ring_sum_op;

}  // namespace tessera
