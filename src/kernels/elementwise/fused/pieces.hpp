// The pieces of a fused program's shape: ranges of its elements that stay in the cache.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/elementwise/fused.hpp"

namespace tessera::kernels {

using Strides = std::vector<std::int64_t>;

// The program's shape with dims merged that are contiguous for every operand. No dims are merged if an
// operand consists of parts, or if the outputs have gaps between their rows.
struct FusedSpace {
  std::vector<std::int64_t> extents;
  std::vector<Strides> strides;  // per input
  bool has_parts = false;

  FusedSpace(const Shape& shape, std::span<const FusedOperand> inputs, bool has_gaps)
      : strides(inputs.size()) {
    for (const auto& input : inputs) has_parts |= !input.parts.empty();
    const bool keeps_dims = has_parts || has_gaps;
    Strides dense(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) dense[d - 1] = dense[d] * shape[d];
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1 && !keeps_dims) continue;
      const auto stride = [&](std::size_t i) {
        return inputs[i].strides.empty() ? dense[d] : inputs[i].strides[d];
      };
      bool one_with_last = !extents.empty() && !keeps_dims;
      for (std::size_t i = 0; one_with_last && i < inputs.size(); ++i)
        one_with_last = strides[i].back() == stride(i) * shape[d];
      if (one_with_last)
        extents.back() *= shape[d];
      else
        extents.push_back(shape[d]);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (one_with_last)
          strides[i].back() = stride(i);
        else
          strides[i].push_back(stride(i));
      }
    }
    if (extents.empty()) {
      extents.push_back(1);
      for (auto& s : strides) s.push_back(0);
    }
  }
};

// A piece is a range of dim `split` with all dims below it: `step` slices of `slice` elements.
//
//   extents   e0 ... | e_split                | ... e_last
//             outer  | cut into ranges of step | slice
struct FusedPieces {
  std::size_t split = 0;
  std::int64_t slice = 1, step = 1, per_outer = 1, outer = 1;

  FusedPieces(const std::vector<std::int64_t>& extents, std::int64_t elements) {
    split = extents.size() - 1;
    while (split > 0 && slice * extents[split] * 2 <= elements) slice *= extents[split--];
    step = std::clamp<std::int64_t>(elements / slice, 1, extents[split]);
    per_outer = (extents[split] + step - 1) / step;
    for (std::size_t d = 0; d < split; ++d) outer *= extents[d];
  }
  std::int64_t count() const { return outer * per_outer; }
  std::int64_t largest() const { return step * slice; }
};

}  // namespace tessera::kernels
