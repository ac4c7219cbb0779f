// The contraction under matmul, dot, einsum and tensordot.
#pragma once
#include <vector>

#include <tessera/ops/products.hpp>
#include "graph/op.hpp"

namespace tessera {

// Dims of a and b that are contracted or batched, pairwise. The result has the dims: batch, free dims of a,
// free dims of b.
struct DotDims {
  std::vector<int> contract_a, contract_b, batch_a, batch_b;
  MatmulOptions options = {};
  template <class V> void fields(V&& visit) const {
    visit("contract_a", contract_a);
    visit("contract_b", contract_b);
    visit("batch_a", batch_a);
    visit("batch_b", batch_b);
    if (options.algorithm != ProductAlgorithm::automatic) visit("algorithm", options.algorithm);
    if (options.memory_limit_bytes != 0) visit("memory_limit_bytes", options.memory_limit_bytes);
  }
};

// The dims of an operand that are neither contracted nor batched.
std::vector<int> free_dims(int ndim, const std::vector<int>& contract, const std::vector<int>& batch);

// The columns of the result, seen as a matrix, are its last dims: so many.
int free_dims_of_b(const DotDims&, const Shape& b);

// The options of the innermost MatmulScope; the defaults outside of any.
const MatmulOptions& innermost_matmul_options();

// Operands of one dtype. ShapeError naming both shapes and the dims that differ. Options that the dims do
// not bring are those of the innermost MatmulScope.
Array dot_general(const Array& a, const Array& b, DotDims);
// The seconds of that by the rates of the machine: bytes that move, the sum over the ranks included, and one
// rank's arithmetic. The same on all ranks.
double dot_seconds(const Array& a, const Array& b, const DotDims&);

}  // namespace tessera
