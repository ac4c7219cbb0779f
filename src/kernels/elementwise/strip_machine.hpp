// Runs a chain of float operations on strips of eight vectors that stay in registers from the first
// operation to the last.
//
// The code of a chain is a list of instructions on one accumulator (the strip). Each instruction's function
// ends with a call of the next one's, with the accumulator in the argument registers; compilers turn this
// tail call into a jump.
//
//   (x * 2 + y) - x      load x | multiply #2 | add y | subtract x | store | end
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/elementwise.hpp"

namespace tessera::kernels {

enum class StripOp {
  none,
  load,
  store,
  prefetch,
  end,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  fmax,
  fmin,
  negative,
  abs,
  square,
  reciprocal,
  relu
};

// The operand of a binary instruction: memory along the strip, or one element for all. Reversed: operand op
// accumulator.
enum class StripOperand { memory, scalar };

struct StripInstruction {
  void (*run)() = nullptr;             // from strip_function
  const std::byte* address = nullptr;  // of the operand in strip 0
};

// The strip instruction equivalent to a map's function, or none.
StripOp strip_op_of(MapFn, Dtype);
inline bool is_unary(StripOp op) { return op >= StripOp::negative; }

constexpr int vectors_in_strip = 8;
std::int64_t strip_elements(Dtype);
void (*strip_function(Dtype, StripOp, StripOperand, bool reversed))();
// Executes code on strips 0 .. strips - 1; the last instruction is `end`. Addresses are those of strip 0.
void run_strips(const StripInstruction* code, std::int64_t strips);

}  // namespace tessera::kernels
