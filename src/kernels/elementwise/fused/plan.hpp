// How a fused program runs: the pieces, how each operand is read, the buffer of each register, and the chains
// of machine code. Made once; FusedRun (fused.cpp) follows it.
#pragma once
#include <utility>
#include <vector>

#include "kernels/elementwise/float_chain.hpp"
#include "kernels/elementwise/fused/pieces.hpp"

namespace tessera::kernels {

// The assignment of a program's registers to buffers of one piece each.
struct FusedRegisters {
  static constexpr int in_place = -1;  // lives in an operand's memory
  std::vector<int> buffer;  // per register: buffer number, in_place, or -2 - o: in the memory of output o
  std::vector<std::pair<int, int>> stores;  // register -> output, copied at the end of a piece
  int buffers = 0;
};

// Whether a block runs again at another address. Its output may then not begin at a cache line, which
// streaming stores need; and it is written where its operand was read, so streaming would gain nothing.
enum class Runs { once, again_elsewhere };

class FusedPlan {
 public:
  // pitch: elements from one row of the outputs to the next, for a shape (rows, columns); 0: dense.
  FusedPlan(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
            std::span<std::byte* const> outputs, Runs runs = Runs::once, std::int64_t pitch = 0);

 protected:
  enum class Reads { in_place, splat, packed, parts };
  Dtype dtype_of_register(int r) const {
    const auto n = static_cast<int>(program_.inputs.size());
    return r < n ? program_.inputs[r].dtype : program_.steps[r - n].out;
  }

  const FusedProgram& program_;
  std::span<const FusedOperand> inputs_;
  std::span<std::byte* const> outputs_;
  std::int64_t row_pitch_;  // of outputs with gaps between their rows; 0: dense
  FusedSpace space_;
  FusedPieces pieces_;
  std::vector<Reads> reads_;
  FusedRegisters registers_;
  std::vector<FloatChain> chains_;
  std::size_t buffer_bytes_ = 0;
  std::vector<int> prefetched_;  // per input: the step whose chain fetches its next piece, or -1
  bool streams_ = false;         // outputs bypass the cache
  bool is_one_loop_ = false;
  bool rest_only_ = false;  // buffers hold only the elements of the last, partial group
  std::int64_t group_ = 1;  // of the loop

 private:
  bool is_one_element(std::size_t input) const;
  // The elements of a piece: few enough that all its buffers and the next piece's operands fit the L1 cache,
  // many enough to make a call per step worthwhile. Whole strips, so that chains have no remainder.
  std::int64_t piece_elements() const;
  void classify_inputs();
  // Chains prefetch operands too large for the L1 cache one piece ahead.
  void choose_prefetches(std::int64_t elements);
  std::vector<FloatChain> chains_for(std::int64_t elements, bool streams) const;
  // Runs the whole program as machine code, if every operand is memory or a number. The code writes the
  // outputs itself, bypassing the cache if they are large; buffers serve only the elements of the last,
  // partial group.
  bool prepare_one_loop(std::int64_t elements);
  // Whether every piece of every output begins at a cache line.
  bool are_outputs_on_lines() const;
  void assign_registers(std::int64_t elements);
  // A step whose result is an output may write it directly, unless that memory is an operand of a later step.
  int direct_output(int r, int step, const std::vector<int>& last_use, std::int64_t elements) const;
};

}  // namespace tessera::kernels
