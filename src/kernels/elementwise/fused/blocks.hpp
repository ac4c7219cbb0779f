// Blocks of a fused program's shape whose one output is reduced while it is in the cache.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/elementwise/fused.hpp"
#include "kernels/parallel.hpp"

namespace tessera::kernels {

inline Dtype output_dtype(const FusedProgram& program) {
  const auto n = program.inputs.size(), r = static_cast<std::size_t>(program.outputs.at(0));
  return r < n ? program.inputs[r].dtype : program.steps[r - n].out;
}

inline std::vector<std::int64_t> dense_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// To the next block of a shape, in the dims that are not fixed; false behind the last.
template <class IsFixed> bool advance_block(std::vector<std::int64_t>& at, const Shape& shape,
                                            std::span<const std::int64_t> block, IsFixed&& is_fixed) {
  for (std::size_t d = at.size(); d-- > 0;) {
    if (is_fixed(d)) continue;
    at[d] += block[d];
    if (at[d] < shape[d]) return true;
    at[d] = 0;
  }
  return false;
}

// Calls work(at) for the first block and all that advance(at) finds. Few blocks use all threads each, many
// are shared among them.
template <class Advance, class Work> void for_blocks(const Shape& shape, Advance&& advance, Work&& work) {
  std::vector<std::vector<std::int64_t>> blocks{std::vector<std::int64_t>(shape.size(), 0)};
  for (auto at = blocks[0]; advance(at);) blocks.push_back(at);
  const auto count = static_cast<std::int64_t>(blocks.size());
  const auto work_on = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) work(blocks[static_cast<std::size_t>(b)]);
  };
  if (count < 4 * threads())
    work_on(0, count);
  else
    share(count, 1, work_on);
}

// Runs the program on the block of these extents at `at`; `dense`: strides of the program's shape.
inline void run_block(const FusedProgram& program, std::span<const FusedOperand> inputs,
                      std::span<const std::int64_t> dense, std::span<const std::int64_t> at,
                      const Shape& extents, std::byte* values) {
  std::vector<FusedOperand> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].parts.empty()) {
      operands.push_back({nullptr, {}, inputs[i].parts, at});
      continue;
    }
    const auto strides = inputs[i].strides.empty() ? dense : inputs[i].strides;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    operands.push_back(
        {inputs[i].data + offset * static_cast<std::int64_t>(itemsize(program.inputs[i].dtype)), strides});
  }
  run_fused(program, extents, operands, std::span(&values, 1));
}

}  // namespace tessera::kernels
