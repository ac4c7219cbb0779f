// Finds the sequences of float arithmetic in a fused program that run as one, by machine code or else by the
// strip machine.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/elementwise/chain_code.hpp"
#include "kernels/elementwise/fused.hpp"
#include "kernels/elementwise/strip_machine.hpp"

namespace tessera::kernels {

// Steps [first, last) of a program. Addresses change between pieces.
struct FloatChain {
  int first = 0, last = 0;
  Dtype dtype;
  std::vector<int> prefetched;  // inputs whose next piece is fetched

  std::shared_ptr<const ChainCode> code;
  std::vector<int> arrays, numbers;  // the registers of the code's arrays and numbers
  ChainNumbers table;

  std::vector<StripInstruction> strips;  // if there is no machine code
  std::vector<int> registers;            // of each instruction's operand; -1: none

  std::int64_t group() const { return code ? code->group() : strip_elements(dtype); }
  // Elements [0, n) of a piece, n a multiple of the group. at: the addresses of the program's registers;
  // ahead: bytes from an input's piece to its next.
  void run(std::span<std::byte* const> at, std::int64_t n, std::size_t ahead);
};

struct ChainInput {
  bool is_number = false;            // the same element for a whole piece
  const std::byte* value = nullptr;  // of a number that is equal in all pieces
  int prefetched_by = -1;            // the step that fetches the next piece
};
// streams: results bypass the cache if one chain is the whole program.
std::vector<FloatChain> find_chains(const FusedProgram&, std::span<const ChainInput>, std::int64_t elements,
                                    bool streams);
// Whether machine code runs the whole program, so that no step needs a buffer.
bool is_one_loop(const FusedProgram&, std::span<const FloatChain>);

}  // namespace tessera::kernels
