// Machine code for a chain of float operations: one loop over vectors in which every value stays in a
// register from the operation that makes it to the last that reads it.
//
//   (x * 2 + y) - x      load x | multiply by #0 | add y | subtract x | store      for each group of vectors
//
// The strip machine (strip_machine.hpp) does the same with one function per operation, on every machine, with
// the same bits. Machine code is used on x86-64 with AVX2 if the system allows executable memory.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/elementwise/strip_machine.hpp"

namespace tessera::kernels {

struct ChainOperand {
  enum class Kind : std::uint8_t { none, memory, number, result } kind = Kind::none;
  std::uint8_t index = 0;  // of the array, of the number, or of the step that computes it
};
struct ChainStep {
  StripOp op;
  ChainOperand a, b;
  int stored_to = -1;     // the array that takes the result
  bool is_plain = false;  // one operand of a maximum or minimum is a number, neither 0 nor NaN
};
struct ChainRecipe {
  Dtype dtype;
  std::vector<ChainStep> steps;
  int arrays = 0, numbers = 0;
  std::vector<int> prefetched;  // arrays whose next piece is prefetched
  bool streams = false;         // stores bypass the cache; stored arrays begin at cache lines
};

// The numbers of a chain, each repeated over a vector of its own, followed by the constants that instructions
// need.
class ChainNumbers {
 public:
  static constexpr std::size_t vector_bytes = 64;
  enum class Constant { sign, magnitude, one, zero };

  ChainNumbers() = default;
  ChainNumbers(Dtype, int numbers);
  void set(int number, const std::byte* element);
  const std::byte* table() const { return vectors_.empty() ? nullptr : vectors_[0].bytes; }

 private:
  struct alignas(vector_bytes) Vector {
    std::byte bytes[vector_bytes];
  };
  std::size_t item_ = 0;
  std::vector<Vector> vectors_;
};

class ChainCode {
 public:
  virtual ~ChainCode() = default;
  static constexpr std::size_t most_arrays = 12;  // including those that are prefetched
  // Elements per call are a multiple of this.
  std::int64_t group() const { return group_; }
  // arrays: those of the recipe, then the next pieces of those that are prefetched.
  void run(const std::byte* const* arrays, const ChainNumbers& numbers, std::int64_t bytes) const {
    run_(arrays, numbers.table(), bytes);
  }

 protected:
  using Function = void (*)(const std::byte* const*, const std::byte*, std::int64_t);
  std::int64_t group_ = 0;
  Function run_ = nullptr;
};

// The code of a chain, cached for equal chains. nullptr if there is none or none yet: a chain of few elements
// is compiled only when it is seen again.
std::shared_ptr<const ChainCode> chain_code(const ChainRecipe&, std::int64_t elements);
// For tests: false makes every chain use the strip machine. Returns the previous value.
bool set_chain_code(bool on);

}  // namespace tessera::kernels
