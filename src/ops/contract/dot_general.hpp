// The contraction under matmul, dot, einsum and tensordot.
#pragma once
#include <vector>

#include "graph/op.hpp"

namespace tessera {

// Dims of a and b that are contracted or batched, pairwise. The result has the dims: batch, free dims of a,
// free dims of b.
struct DotDims {
  std::vector<int> contract_a, contract_b, batch_a, batch_b;
  template <class V> void fields(V&& visit) const {
    visit("contract_a", contract_a);
    visit("contract_b", contract_b);
    visit("batch_a", batch_a);
    visit("batch_b", batch_b);
  }
};

// Operands of one dtype. ShapeError naming both shapes and the dims that differ.
Array dot_general(const Array& a, const Array& b, DotDims);

}  // namespace tessera
