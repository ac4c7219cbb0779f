// A chain of elementwise steps in one pass over pieces that stay in the cache.
//
//   registers:  0 .. inputs-1        the operands, read through their strides
//               inputs + s           the result of step s
//
//   for each piece of ~1000 elements:  step 0 -> step 1 -> ... -> stores
//                                      (registers are small buffers, reused when dead)
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/parts.hpp"
#include "kernels/threads.hpp"
#include "types/reduce_kind.hpp"

namespace tessera::kernels {

struct FusedInput {
  Dtype dtype;
};
struct FusedStep {
  MapFn fn = nullptr;
  Dtype out;
  int in[3] = {0, 0, 0};
  int n_in = 0;
};
struct FusedProgram {
  std::vector<FusedInput> inputs;
  std::vector<FusedStep> steps;
  std::vector<int> outputs;  // registers to store; an input or a repeated register is allowed
};

// Element strides per dim of the program's shape, 0 if the operand is broadcast. Empty strides: dense
// row-major. An operand with parts is located by them alone: they cover the program's shape, whose first
// element has index `origin` in their boxes.
struct FusedOperand {
  const std::byte* data = nullptr;
  std::span<const std::int64_t> strides = {};
  std::span<const FusedPart> parts = {};
  std::span<const std::int64_t> origin = {};  // empty: zeros
};

// Every output is dense row-major of `shape`. An output may be the same memory as a dense input of the same
// item size; otherwise it must not overlap any input.
void run_fused(const FusedProgram&, const Shape& shape, std::span<const FusedOperand> inputs,
               std::span<std::byte* const> outputs);

// A program with one output, prepared once and run on blocks of (rows, columns) at different addresses. Rows
// of the output are `pitch` elements apart. One-element operands keep their addresses.
class FusedBlock {
 public:
  FusedBlock(const FusedProgram&, std::int64_t rows, std::int64_t columns,
             std::span<const FusedOperand> operands, std::byte* output, std::int64_t pitch);
  ~FusedBlock();
  FusedBlock(FusedBlock&&) noexcept;
  void run(std::span<const std::byte* const> operands, std::byte* output);

 private:
  class Ready;
  std::unique_ptr<Ready> ready_;
};

// Runs the chain, then reduces (sum prod max min any all count_nonzero) its one output over `axes`, without
// memory of the chain's shape. out is dense over the other dims, of reduce_result(kind, dtype of the output).
// Errors of sums grow with the logarithm of the number of terms, as in reduce().
void run_fused_reduce(const FusedProgram&, const Shape& shape, std::span<const FusedOperand> inputs,
                      ReduceKind kind, const std::vector<int>& axes, std::byte* out);

// The same with a sum or product as a tree over positions of one dim (kernels/reduce/tree.hpp), of a block
// that begins at position `first`. The result has the block's shape with part.rows in this dim, or is without
// it.
struct FusedTree {
  ReduceKind kind;
  int dim;
  std::int64_t first;
  TreePart part;
};
void run_fused_tree(const FusedProgram&, const Shape& shape, std::span<const FusedOperand> inputs,
                    const FusedTree&, std::byte* out);

}  // namespace tessera::kernels
