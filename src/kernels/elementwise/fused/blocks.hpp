// Blocks of a fused program's shape whose one output is reduced while it is in the cache.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/elementwise/fused.hpp"

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
