// Operands of a chain that are held in several parts: a shifted array whose edge was received.
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

// The address of `piece` in the first part that holds it densely in order, otherwise nullptr.
const std::byte* dense_in_parts(std::span<const FusedPart>, const Box& piece, std::size_t itemsize);

// Copies the elements of `piece`, densely in order. If parts overlap, the first one counts.
void pack_parts(std::span<const FusedPart>, const Box& piece, std::size_t itemsize, std::byte* out);

}  // namespace tessera::kernels
