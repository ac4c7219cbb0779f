// Finds the runs of float arithmetic in a fused program that the strip machine can execute as one.
#pragma once
#include <vector>

#include "kernels/elementwise/fused.hpp"
#include "kernels/elementwise/strip_machine.hpp"

namespace tessera::kernels {

// Steps [first, last) of a program as code. Instruction i works on register `registers[i]`, whose address
// changes from piece to piece.
struct FusedChain {
  int first = 0, last = 0;
  Dtype dtype;
  std::vector<StripInstruction> code;
  std::vector<int> registers;   // -1: no operand
  std::vector<int> prefetched;  // the first instructions fetch the next piece of these inputs
};

// one_element[i]: input i is the same element for the whole piece. prefetched[i]: the step that fetches the
// next piece of input i, or -1.
std::vector<FusedChain> find_chains(const FusedProgram&, const std::vector<bool>& one_element,
                                    const std::vector<int>& prefetched);

}  // namespace tessera::kernels
