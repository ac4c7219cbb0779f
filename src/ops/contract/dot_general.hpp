// The contraction that implements matmul, dot, einsum and tensordot.
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

// The dims of a product's node; nullptr for other ops.
const DotDims* dims_of_product(const Node&);
bool is_convolution(const Node&);
// A product of a ReproducibleScope adds up parts of its summed dims before it adds them to the sum of those
// before. The number of indices of the first summed dim that are whole parts; 0 for other ops.
std::int64_t length_in_order(const Node&);
// Such a product on a slab of its first summed dim, as one with a single summed dim, that of `dims` in each
// operand. It is added up `at_a_time` elements at a time, in parts of `depth` of these.
struct OrderedParts {
  ParamsPtr params;
  std::vector<Array> inputs;
  std::vector<int> dims;
  std::int64_t at_a_time, depth;
};
OrderedParts ordered_parts(const Node&, std::vector<Array> inputs);
// (groups * a, b, taps...) -> (groups * b, a, reversed taps...), for the transpose of a convolution.
Array transposed_weights(const Array& weights, std::int64_t groups);

// The dims of an operand that are neither contracted nor batched.
std::vector<int> free_dims(int ndim, const std::vector<int>& contract, const std::vector<int>& batch);

// The number of last dims of the result that are the columns of its matrix view.
int free_dims_of_b(const DotDims&, const Shape& b);

// The options of the innermost MatmulScope; the defaults outside of any.
const MatmulOptions& innermost_matmul_options();

// Operands must have one dtype. ShapeError names both shapes and the dims that differ. Options not set in the
// dims come from the innermost MatmulScope.
Array dot_general(const Array& a, const Array& b, DotDims);
// The estimated seconds of dot_general by the machine's rates: bytes moved, including the sum over ranks, and
// one rank's arithmetic. The same on all ranks.
double dot_seconds(const Array& a, const Array& b, const DotDims&);

}  // namespace tessera
