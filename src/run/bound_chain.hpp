// Chains of elementwise ops bound to kernels, and chains that follow a kernel part by part.
#pragma once
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "kernels/elementwise/fused.hpp"
#include "run/steps.hpp"

namespace tessera {

// The program of a chain; its output is the last step's result. operands: their dtypes; inputs may be
// appended.
kernels::FusedProgram bound_program(const FusedChain&, std::span<const Dtype> operands);
// Element strides of an operand in the iteration space of the result: 0 where it is broadcast.
std::vector<std::int64_t> operand_strides(const Shape& operand, const Shape& result);

// The chain that a kernel runs on each complete part of its result.
//
//   c = a . b, then relu(c + bias)        c (rows, columns)     bias (columns): strides 0, 1
//
//   rows 64..128 of columns 96..192 are complete   ->   relu(c + bias[96..192]) in their place
//
// Small results, and operands without fixed row and column strides, are processed after the kernel instead.
class BoundEpilogue {
 public:
  BoundEpilogue(const BindContext&, const Instruction&, const Epilogue&);
  // For a result stored at `out`. nullptr: the kernel need not call anything.
  const LastPass* begin(const Frame&, std::byte* out);
  void finish();                                 // called after the kernel
  BoundEpilogue(const BoundEpilogue&) = delete;  // kernels hold a pointer to it

 private:
  using Extents = std::pair<std::int64_t, std::int64_t>;
  bool find_row_and_column_steps(int columns_of_parts);
  void run_part(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns);

  std::vector<int> inputs_;  // values; the kernel's result is left out
  std::size_t result_;       // index of the kernel's result among the operands
  kernels::FusedProgram program_;
  Shape shape_;
  std::int64_t columns_ = 1;
  std::vector<std::vector<std::int64_t>> strides_;  // per operand
  std::vector<std::array<std::int64_t, 2>> steps_;  // from a row to the next, from a column to the next
  std::vector<const std::byte*> data_;              // for the current run
  std::byte* out_ = nullptr;                        // for the current run
  std::vector<std::map<Extents, kernels::FusedBlock>> blocks_;  // blocks of each thread, for the current run
  LastPass pass_;                                               // empty: everything runs in finish()
};

}  // namespace tessera
