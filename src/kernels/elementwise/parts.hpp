// Operands of a chain that lie in several places: a shifted array, of which the edge came from elsewhere.
//
//   box of the operand:   [ received | ---- in the source, shifted ---- ]
//   piece of a chain:                    [  in place  ]
//   piece of a chain:          [ copied ]                    from two parts
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "types/box.hpp"

namespace tessera::kernels {

// Element i of the operand, i in box, is data[offset + i . strides]. Strides count elements; they may be
// negative or 0.
struct FusedPart {
  Box box;
  const std::byte* data = nullptr;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

// The address of `piece` in the first part that has all of its elements densely in order. Otherwise nullptr.
const std::byte* dense_in_parts(std::span<const FusedPart>, const Box& piece, std::size_t itemsize);

// The elements of `piece`, densely in order. Where parts overlap the first one counts.
void pack_parts(std::span<const FusedPart>, const Box& piece, std::size_t itemsize, std::byte* out);

}  // namespace tessera::kernels
