// A chain of elementwise ops as kernels know it, and a chain that follows a kernel part by part.
#pragma once
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "kernels/elementwise/fused.hpp"
#include "run/steps.hpp"

namespace tessera {

// Its one output is the last step's result. operands: their dtypes, to which more inputs may be added.
kernels::FusedProgram bound_program(const FusedChain&, std::span<const Dtype> operands);
// Element strides of an operand in the iteration space of the result: 0 where it is broadcast.
std::vector<std::int64_t> operand_strides(const Shape& operand, const Shape& result);

// The work that a kernel calls for each part of its result that is complete.
//
//   c = a . b, then relu(c + bias)        c (rows, columns)     bias (columns): strides 0, 1
//
//   rows 64..128 of columns 96..192 are complete   ->   relu(c + bias[96..192]) in their place
//
// Few elements, and operands that do not walk along rows and columns, wait for the whole.
class BoundEpilogue {
 public:
  BoundEpilogue(const BindContext&, const Instruction&, const Epilogue&);
  // For the result that comes to lie at `out`. nullptr: the kernel need not call anything.
  const LastPass* begin(const Frame&, std::byte* out);
  void finish();                                 // the kernel is done
  BoundEpilogue(const BoundEpilogue&) = delete;  // kernels call back

 private:
  using Extents = std::pair<std::int64_t, std::int64_t>;
  bool find_row_and_column_steps(int columns_of_parts);
  void run_part(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns);

  std::vector<int> inputs_;  // values; of the kernel's result none
  std::size_t result_;       // which operand that is
  kernels::FusedProgram program_;
  Shape shape_;
  std::int64_t columns_ = 1;
  std::vector<std::vector<std::int64_t>> strides_;  // per operand
  std::vector<std::array<std::int64_t, 2>> steps_;  // from a row to the next, from a column to the next
  std::vector<const std::byte*> data_;              // this time
  std::byte* out_ = nullptr;                        // this time
  std::vector<std::map<Extents, kernels::FusedBlock>> blocks_;  // of each thread, this time
  LastPass pass_;                                               // empty: all at the end
};

}  // namespace tessera
